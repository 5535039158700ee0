"""The client of the HTTP service: one request at a time, each on one of
several connections that are kept alive.

    python services_client.py PORT CONNECTIONS

Each line of its input has waits, in seconds; it makes a request after each,
and answers the line with 'done'.
"""

import http.client
import random
import sys
import time


def main():
    port, connections = map(int, sys.argv[1:])
    opened = [http.client.HTTPConnection('127.0.0.1', port)
              for _ in range(connections)]
    rng = random.Random(1)
    for line in sys.stdin:
        for wait in line.split():
            time.sleep(float(wait))
            connection = rng.choice(opened)
            connection.request('GET', '/')
            connection.getresponse().read()
        print('done', flush=True)
    for connection in opened:
        connection.close()


if __name__ == '__main__':
    main()
