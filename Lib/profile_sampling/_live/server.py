"""A server on the loopback, for who has the address.

Whoever knows the token may ask, by a name of this machine.  A page of another
site knows neither.
"""

import hmac
import secrets
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from urllib.parse import parse_qs, urlsplit

from profile_sampling._live import responses

HOST = '127.0.0.1'
# The first that is free.
_PORTS = *range(8231, 8241), 0
# Names of this machine: another one may be made to mean 127.0.0.1 by whoever
# owns it.
_NAMES = frozenset({'127.0.0.1', 'localhost', '::1'})
# No letter and digit that look alike; 12 of them are 60 bits.
_LETTERS = 'abcdefghijkmnpqrstuvwxyz23456789'
_CLIENT_S = 30


class Server:
    """Serves Seconds until close().

    address  what a browser is given
    port     where
    """

    def __init__(self, seconds):
        token = ''.join(secrets.choice(_LETTERS) for _ in range(12))
        self._token = '-'.join([token[:4], token[4:8], token[8:]])
        self._server = _bound(_handler(seconds, self._token))
        self.port = self._server.server_port
        self.address = f'http://{HOST}:{self.port}/?t={self._token}'
        self._thread = threading.Thread(
            target=self._server.serve_forever, name='page', daemon=True)
        self._thread.start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def server_bind(self):
        # HTTPServer's own looks the name up, of which containers have none.
        TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address

    def handle_error(self, request, client_address):
        # A browser that goes away in the middle is no fault.
        if not isinstance(sys.exception(), (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)


def _bound(handler):
    for port in _PORTS:
        try:
            return _Server((HOST, port), handler)
        except OSError:
            if not port:
                raise


def _handler(seconds, token):

    class Handler(BaseHTTPRequestHandler):
        protocol_version = 'HTTP/1.1'
        timeout = _CLIENT_S

        def do_GET(self):
            response = self._response()
            self.send_response(response.status)
            for header in response.headers:
                self.send_header(*header)
            self.end_headers()
            self.wfile.write(response.body)

        def _response(self):
            try:
                url = urlsplit(self.path)
            except ValueError as exc:
                return responses.refusal(400, f'That is no address: {exc}.')
            if not _is_here(self.headers.get('Host', '')):
                return responses.refusal(
                    403, 'Only names of this machine are answered.')
            if not self._has_token(url.query):
                return responses.refusal(
                    403, 'The whole address is needed, as it was printed, '
                    'with ?t= and what follows.')
            return responses.respond(seconds, url.path.removeprefix('/'),
                                     url.query)

        def _has_token(self, query):
            kind, _, given = self.headers.get('Authorization', '').partition(
                ' ')
            if kind.lower() != 'bearer':
                given = parse_qs(query).get('t', [''])[-1]
            return hmac.compare_digest(given.strip().encode(), token.encode())

        def version_string(self):
            return 'profile_sampling'

        def log_message(self, format, *args):
            """The terminal has the address."""

    return Handler


def _is_here(host):
    try:
        return urlsplit(f'//{host}').hostname in _NAMES
    except ValueError:
        return False
