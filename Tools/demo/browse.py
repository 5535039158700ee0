"""Keeps http.server busy, as a few people with fast fingers would.

    python Tools/demo/browse.py SECONDS LOG COMMAND...

Starts COMMAND, which must be an http.server that prints its port, walks
through what it serves with several clients at once, and ends it by Ctrl-C
after that time.  What the server says on stderr goes to the file LOG; this
program prints how many requests were answered.
"""

import random
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request

CLIENTS = 6
ANSWER_SECONDS = 20
START_SECONDS = 30
LINK = re.compile(rb'<li><a href="([^"]+)">')


class Client(threading.Thread):
    """Follows a random link until it has a file, then starts anew."""

    def __init__(self, number, url, deadline):
        super().__init__(name=f'client-{number}', daemon=True)
        self._rng = random.Random(number)
        self._url = url
        self._deadline = deadline
        # A proxy of the environment is not for the loopback interface.
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}))
        self.answers = 0

    def run(self):
        url = self._url
        while time.monotonic() < self._deadline:
            try:
                with self._opener.open(url, timeout=ANSWER_SECONDS) as page:
                    links = LINK.findall(page.read())
            except OSError:
                links = []      # too much for the server: no matter
            else:
                self.answers += 1
            if links and url.endswith('/'):
                link = self._rng.choice(links).decode()
                url = urllib.parse.urljoin(url, link)
            else:
                url = self._url


def port_of(server):
    """The port that the server says it serves on."""
    watchdog = threading.Timer(START_SECONDS, server.kill)
    watchdog.start()
    line = server.stdout.readline()
    watchdog.cancel()
    found = re.search(r' port (\d+) ', line)
    if not found:
        server.kill()
        sys.exit(f'the server did not start: {line.strip()!r}')
    return int(found[1])


def main():
    seconds, log, *command = sys.argv[1:]
    # What runs in the background may ignore Ctrl-C, and its children then
    # do so as well; a handler is not inherited.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with open(log, 'w') as stderr:
        server = subprocess.Popen(command, stdout=subprocess.PIPE,
                                  stderr=stderr, text=True)
    url = f'http://127.0.0.1:{port_of(server)}/'
    deadline = time.monotonic() + float(seconds)
    clients = [Client(number, url, deadline) for number in range(CLIENTS)]
    for client in clients:
        client.start()
    for client in clients:
        client.join(float(seconds) + 2 * ANSWER_SECONDS)
    server.send_signal(signal.SIGINT)
    try:
        status = server.wait(ANSWER_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
        sys.exit('the server did not end')
    if status:
        sys.exit(f'the server ended with status {status}')
    print(sum([client.answers for client in clients]))


if __name__ == '__main__':
    main()
