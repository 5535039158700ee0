"""Labels of requests to real servers, under load.

What is checked of each: all work of a route has the label of that route and
no other, from the framework's own routing to the end of the body; the shares
of the labels are the true ones; and who serves no request has no label.
"""

import asyncio
import contextlib
import socket
import socketserver
import threading
import unittest
from wsgiref.simple_server import WSGIServer

from profile_sampling import labels as held
from profile_sampling.middleware import (
    ASGIMiddleware, WSGIMiddleware, django_route, flask_route,
    starlette_route)

from ..support.packages import contained, optional
from ..support.sessions import names, python_leaf
from .served import (
    NAP_SECONDS, Served, ServedTest, chunks, get, get_many, nap,
    serving_wsgi, work_later, work_one, work_three)

with contained():
    try:
        import flask
        from werkzeug.serving import make_server
    except ImportError:
        flask = None
    try:
        import fastapi
        import starlette.applications
        import starlette.responses
        import starlette.routing
    except ImportError:
        fastapi = None
    try:
        import django
        import django.conf
        import django.http
        import django.urls
    except ImportError:
        django = None
uvicorn = optional('uvicorn')
uvloop = optional('uvloop')


class ThreadingServer(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = False


def found_by(find, path, **changes):
    """The route of a WSGI request."""
    from .test_middleware import environ
    return find(environ(PATH_INFO=path, **changes))


def found_in(find, path, method='GET', **changes):
    """The route of an ASGI request."""
    return find({'type': 'http', 'method': method, 'path': path,
                 'root_path': '', 'headers': [(b'host', b'localhost')]}
                | changes)


@unittest.skipUnless(flask, 'the flask package is not installed')
class FlaskTest(ServedTest):

    def make_app(self):
        app = flask.Flask('served')

        @app.get('/one/<int:n>')
        def one(n):
            work_one()
            return ''

        @app.get('/three/<n>')
        def three(n):
            work_three()
            return ''

        @app.get('/nap/<n>')
        def sleep(n):
            nap()
            return ''

        @app.get('/stream/<n>')
        def stream(n):
            return flask.Response(chunks(), mimetype='text/plain')

        @app.get('/slash/')
        def slash():
            return ''

        @app.get('/labels')
        def labels():
            return held()
        return app

    def test_under_load(self):
        app = self.make_app()
        app.wsgi_app = WSGIMiddleware(app.wsgi_app)
        server = make_server('127.0.0.1', 0, app, threaded=True)
        server.RequestHandlerClass.log_request = lambda *args: None
        thread = threading.Thread(target=server.serve_forever, args=[0.01])
        with Served() as served:
            thread.start()
            statuses = get_many(server.port, [
                '/one/{}', '/three/{}', '/nap/{}', '/stream/{}',
                '/nothing/{}'])
            server.shutdown()
            thread.join()
            server.server_close()
        self.assertEqual({status for _, status in statuses}, {200, 404})
        self.check(served, {'work_one': 'GET /one/<int:n>',
                            'work_three': 'GET /three/<n>',
                            'work_stream': 'GET /stream/<n>'})
        self.assertEqual(served.labels_below('nap'),
                         {(('route', 'GET /nap/<n>'),)})
        self.assertLessEqual(
            served.labels_below('Flask.wsgi_app'),
            {(('route', f'GET {route}'),) for route in
             ('/one/<int:n>', '/three/<n>', '/nap/<n>', '/stream/<n>',
              '(none)')})
        self.check_outside(served)

    def test_routes(self):
        find = flask_route(self.make_app())
        self.assertEqual(found_by(find, '/one/5'), '/one/<int:n>')
        self.assertEqual(found_by(find, '/one/5', SCRIPT_NAME='/mount'),
                         '/one/<int:n>')
        self.assertIsNone(found_by(find, '/one/five'))
        self.assertIsNone(found_by(find, '/one/5', REQUEST_METHOD='POST'))
        self.assertIsNone(found_by(find, '/slash'), 'it is redirected')

    def test_hosts_and_subdomains(self):
        app = flask.Flask('served', host_matching=True,
                          static_host='example.org')
        app.add_url_rule('/here', 'here', host='<name>.example.org')
        find = flask_route(app)
        self.assertEqual(
            found_by(find, '/here', HTTP_HOST='www.example.org'), '/here')
        self.assertIsNone(found_by(find, '/here', HTTP_HOST='example.com'))

    def test_application_is_recognised(self):
        from werkzeug.middleware.dispatcher import DispatcherMiddleware
        from werkzeug.middleware.proxy_fix import ProxyFix
        app = self.make_app()
        for wrapped, label in (
                (app, 'GET /labels'), (app.wsgi_app, 'GET /labels'),
                (ProxyFix(app), 'GET /labels'),
                (DispatcherMiddleware(app, {}), 'GET')):
            with serving_wsgi(WSGIMiddleware(wrapped), WSGIServer) as port:
                _, body = get(port, '/labels')
            self.assertEqual(flask.json.loads(body), {'route': label})


@contextlib.contextmanager
def serving_asgi(app, loop='asyncio'):
    """uvicorn in a thread; gives its port."""
    server = uvicorn.Server(uvicorn.Config(
        app, loop=loop, lifespan='off', log_config=None, access_log=False))
    with socket.create_server(('127.0.0.1', 0)) as listener:
        thread = threading.Thread(target=server.run, args=[[listener]])
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()


class ASGITest(ServedTest):

    def check_event_loop(self, served):
        """No label while it waits, or reads a request."""
        own = served.below('EpollSelector.select')
        own += served.below('H11Protocol.data_received')
        own += [sample for sample in served.below('Server.run')
                if sample.state == 'waiting'
                and python_leaf(sample).function.qualname == 'Runner.run']
        self.assertTrue(own)
        for sample in own:
            self.assertEqual(sample.labels, {}, names(sample))


@unittest.skipUnless(fastapi and uvicorn,
                     'the fastapi or uvicorn package is not installed')
class FastAPITest(ASGITest):

    def make_app(self):
        app = fastapi.FastAPI()
        users = fastapi.APIRouter()
        inner = fastapi.FastAPI()

        @app.get('/one/{n}')
        async def one(n: int):
            work_one()

        @users.get('/{n}')
        def three(n: int):          # in a thread
            work_three()

        @app.get('/nap/{n}')
        def sleep(n: int):          # in a thread
            nap()

        @app.get('/wait/{n}')
        async def wait(n: int):
            await asyncio.sleep(NAP_SECONDS)

        @inner.get('/stream/{n}')
        def stream(n: int):         # step by step in threads
            return starlette.responses.StreamingResponse(chunks())

        @app.get('/later/{n}')
        def later(n: int, tasks: fastapi.BackgroundTasks):
            tasks.add_task(work_later)

        @app.get('/labels')
        async def labels():
            return held()
        app.include_router(users, prefix='/three')
        app.mount('/mounted', inner)
        return app

    def check_under_load(self, loop):
        app = ASGIMiddleware(self.make_app())
        with Served() as served, serving_asgi(app, loop) as port:
            statuses = get_many(port, [
                '/one/{}', '/three/{}', '/nap/{}', '/wait/{}',
                '/mounted/stream/{}', '/later/{}', '/nothing/{}'])
        self.assertEqual({status for _, status in statuses}, {200, 404})
        self.check(served, {'work_one': 'GET /one/{n}',
                            'work_three': 'GET /three/{n}',
                            'work_stream': 'GET /mounted/stream/{n}',
                            'work_later': 'GET /later/{n}'})
        self.assertEqual(served.labels_below('nap'),
                         {(('route', 'GET /nap/{n}'),)})
        self.assertLessEqual(
            served.labels_below('FastAPI.__call__'),
            {(('route', f'GET {route}'),) for route in
             ('/one/{n}', '/three/{n}', '/nap/{n}', '/wait/{n}',
              '/mounted/stream/{n}', '/later/{n}', '(none)')})
        self.check_outside(served)
        self.check_event_loop(served)

    def test_under_load_with_asyncio(self):
        self.check_under_load('asyncio')

    @unittest.skipUnless(uvloop, 'the uvloop package is not installed')
    def test_under_load_with_uvloop(self):
        self.check_under_load('uvloop')

    def test_routes(self):
        app = self.make_app()
        find = starlette_route(app)
        self.assertEqual(found_in(find, '/one/5'), '/one/{n}')
        self.assertEqual(found_in(find, '/three/5'), '/three/{n}')
        self.assertEqual(found_in(find, '/mounted/stream/5'),
                         '/mounted/stream/{n}')
        self.assertEqual(found_in(find, '/behind/one/5', root_path='/behind'),
                         '/one/{n}')
        self.assertIsNone(found_in(find, '/one/5', method='POST'))
        self.assertIsNone(found_in(find, '/mounted/one/5'))
        app.root_path = '/behind'
        self.assertEqual(found_in(find, '/behind/one/5'), '/one/{n}')

    def test_starlette_routes(self):
        async def endpoint(scope, receive, send):
            pass
        Host, Mount, Route, Router, WebSocketRoute = [
            getattr(starlette.routing, name) for name in
            ('Host', 'Mount', 'Route', 'Router', 'WebSocketRoute')]
        find = starlette_route(starlette.applications.Starlette(routes=[
            Route('/typed/{n:int}', endpoint),
            WebSocketRoute('/room/{name}', endpoint),
            Mount('/static', endpoint),
            Mount('/{tenant}', routes=[
                Mount('/deep', routes=[Route('/{n}', endpoint)])]),
            Host('api.example.org', Router([Route('/call', endpoint)])),
        ]))
        self.assertEqual(found_in(find, '/typed/5'), '/typed/{n}')
        self.assertEqual(found_in(find, '/static/a/b'), '/static/{path}')
        self.assertEqual(found_in(find, '/me/deep/5'), '/{tenant}/deep/{n}')
        self.assertIsNone(found_in(find, '/room/5'))
        self.assertEqual(found_in(find, '/room/5', type='websocket'),
                         '/room/{name}')
        self.assertEqual(
            found_in(find, '/call', headers=[(b'host', b'api.example.org')]),
            '/call')

    def test_scope_is_left_alone(self):
        scope = {'type': 'http', 'method': 'GET', 'path': '/one/5',
                 'headers': []}
        before = scope.copy()
        self.assertEqual(starlette_route(self.make_app())(scope), '/one/{n}')
        self.assertEqual(scope, before)

    def test_as_middleware_of_the_application(self):
        app = self.make_app()
        app.add_middleware(ASGIMiddleware)
        with serving_asgi(app) as port:
            self.assertEqual(get(port, '/labels'),
                             (200, b'{"route":"GET /labels"}'))


def configure_django():
    """Settings are for the whole process; so is this."""
    if django.conf.settings.configured:
        return

    def one(request, n):
        work_one()
        return django.http.HttpResponse()

    def three(request, n):
        work_three()
        return django.http.HttpResponse()

    async def sleep(request, n):
        await asyncio.sleep(NAP_SECONDS)
        return django.http.HttpResponse()

    def stream(request, n):
        return django.http.StreamingHttpResponse(chunks())

    def stream_async(request, n):
        async def steps():
            for chunk in chunks():
                yield chunk
        return django.http.StreamingHttpResponse(steps())

    class urls:
        urlpatterns = []

    django.conf.settings.configure(
        ROOT_URLCONF=urls, ALLOWED_HOSTS=['*'], SECRET_KEY='of the tests',
        LANGUAGES=[('en', 'English'), ('de', 'German')],
        LOGGING_CONFIG=None)
    django.setup()
    from django.conf.urls.i18n import i18n_patterns
    from django.urls import include, path, re_path
    urls.urlpatterns += [
        path('one/<int:n>/', one),
        path('part/', include([path('three/<n>/', three)])),
        path('nap/<n>/', sleep),
        path('stream/<n>/', stream),
        path('stream_async/<n>/', stream_async),
        re_path('^regex/(?P<n>[0-9]+)$', one),
        *i18n_patterns(path('here/<n>/', one))]


@unittest.skipUnless(django, 'the django package is not installed')
class DjangoTest(ASGITest):

    PATHS = ['/one/{}/', '/part/three/{}/', '/nap/{}/', '/nothing/{}']
    ROUTES = {'work_one': 'GET /one/<int:n>/',
              'work_three': 'GET /part/three/<n>/'}

    def setUp(self):
        super().setUp()
        configure_django()

    def check_inside(self, served, stream):
        self.assertLessEqual(
            served.labels_below('BaseHandler.resolve_request'),
            {(('route', f'GET {route}'),) for route in
             ('/one/<int:n>/', '/part/three/<n>/', '/nap/<n>/', stream,
              '(none)')})
        self.check_outside(served)

    def test_wsgi_under_load(self):
        from django.core.wsgi import get_wsgi_application
        app = WSGIMiddleware(get_wsgi_application())
        with Served() as served, serving_wsgi(app, ThreadingServer) as port:
            statuses = get_many(port, self.PATHS + ['/stream/{}/'])
        self.assertEqual({status for _, status in statuses}, {200, 404})
        self.check(served, self.ROUTES
                   | {'work_stream': 'GET /stream/<n>/'})
        self.check_inside(served, '/stream/<n>/')

    @unittest.skipUnless(uvicorn, 'the uvicorn package is not installed')
    def test_asgi_under_load(self):
        from django.core.asgi import get_asgi_application
        app = ASGIMiddleware(get_asgi_application())
        with Served() as served, serving_asgi(app) as port:
            statuses = get_many(port, self.PATHS + ['/stream_async/{}/'])
        self.assertEqual({status for _, status in statuses}, {200, 404})
        self.check(served, self.ROUTES
                   | {'work_stream': 'GET /stream_async/<n>/'})
        self.check_inside(served, '/stream_async/<n>/')
        self.check_event_loop(served)

    def test_routes(self):
        find = django_route()
        for path, route in (
                ('/one/5/', '/one/<int:n>/'),
                ('/part/three/5/', '/part/three/<n>/'),
                ('/regex/5', '/^regex/(?P<n>[0-9]+)$'),
                ('/en/here/5/', '/en/here/<n>/'),
                ('/de/here/5/', '/de/here/<n>/'),
                ('/one/5', None), ('/one/five/', None)):
            self.assertEqual(found_by(find, path), route)
            self.assertEqual(found_in(find, path), route)
        self.assertEqual(found_by(find, '/one/5/', SCRIPT_NAME='/mount'),
                         '/one/<int:n>/')
        self.assertEqual(
            found_in(find, '/mount/one/5/', root_path='/mount'),
            '/one/<int:n>/')

    def test_language_is_left_alone(self):
        from django.utils import translation
        with translation.override('en'):
            found_by(django_route(), '/de/here/5/')
            self.assertEqual(translation.get_language(), 'en')
