"""Servers on the loopback interface that keep what adapters send them."""

import contextlib
import http.server
import threading
import urllib.parse
from concurrent import futures


class Collector:
    """One of OpenTelemetry's."""

    def __init__(self):
        self.requests = []

    def Export(self, request, context):
        from opentelemetry.proto.collector.profiles.v1development import (
            profiles_service_pb2)
        self.requests.append(request)
        return profiles_service_pb2.ExportProfilesServiceResponse()


def received_by_collector(request):
    """Return a request for OpenTelemetry as a server gets it."""
    import grpc
    from opentelemetry.proto.collector.profiles.v1development import (
        profiles_service_pb2_grpc as service)
    collector = Collector()
    server = grpc.server(futures.ThreadPoolExecutor(1))
    service.add_ProfilesServiceServicer_to_server(collector, server)
    port = server.add_insecure_port('127.0.0.1:0')
    server.start()
    try:
        with grpc.insecure_channel(f'127.0.0.1:{port}') as channel:
            service.ProfilesServiceStub(channel).Export(request, timeout=60)
    finally:
        server.stop(None).wait()
    got, = collector.requests
    return got


class Pyroscope(http.server.BaseHTTPRequestHandler):
    """Takes pushes as the server's documentation describes them."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers['Content-Length'])).decode()
        url = urllib.parse.urlsplit(self.path)
        self.server.pushes.append(
            (url.path, dict(urllib.parse.parse_qsl(url.query)), body))
        self.send_response(self.server.answer)
        self.send_header('Content-Length', '0')
        self.end_headers()

    def log_message(self, *args):
        pass


@contextlib.contextmanager
def pyroscope_server():
    """One that keeps what it was given in *pushes*."""
    with http.server.HTTPServer(('127.0.0.1', 0), Pyroscope) as server:
        server.pushes = []
        server.answer = 200
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
