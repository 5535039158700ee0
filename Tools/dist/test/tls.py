"""Ask a server of our own for a page, as any program would.

usage: python3 tls.py CERTIFICATES

Nothing is said about whom to trust: what the interpreter finds by itself
decides.  CERTIFICATES is what certificates.py wrote.
"""

import http.server
import ssl
import sys
import threading
import urllib.request


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'read')

    def log_message(self, *arguments):
        pass


def main():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f'{sys.argv[1]}/SERVER.pem')
    server = http.server.HTTPServer(('127.0.0.1', 0), Page)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f'https://localhost:{server.server_port}/'
    with urllib.request.urlopen(url, timeout=20) as answer:
        if answer.read() != b'read':
            raise SystemExit('tls.py: error: another page came')


if __name__ == '__main__':
    main()
