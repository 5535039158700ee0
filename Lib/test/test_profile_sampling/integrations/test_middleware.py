"""Labels of requests: the protocols, without any framework."""

import asyncio
import io
import unittest
import wsgiref.handlers
import wsgiref.util
import wsgiref.validate

from profile_sampling import labels as held
from profile_sampling.middleware import (
    ASGIMiddleware, WSGIMiddleware, flask_route, starlette_route)

from .served import chunks

ROUTE = {'route': 'GET /things/{id}'}


def tearDownModule():
    asyncio.set_event_loop_policy(None)     # as it was


def template(request):
    return '/things/{id}'


def environ(**changes):
    result = {'PATH_INFO': '/things/7', 'SCRIPT_NAME': '',
              'QUERY_STRING': ''}
    wsgiref.util.setup_testing_defaults(result)
    return result | changes


def start_response(status, headers, exc_info=None):
    return None


def scope(**changes):
    return {'type': 'http', 'method': 'GET', 'path': '/things/7'} | changes


class WSGITest(unittest.TestCase):

    def run_app(self, app, **options):
        return WSGIMiddleware(app, template, **options)(environ(),
                                                        start_response)

    def test_labels_hold_at_each_step(self):
        class Body:
            def __iter__(self):
                seen['iter'] = held()
                for step in 'first', 'second':
                    seen[step] = held()
                    yield b''

            def close(self):
                seen['close'] = held()

        def app(environ, start_response):
            seen['call'] = held()
            return Body()
        seen = {}
        body = self.run_app(app)
        self.assertEqual(held(), {})
        for _ in body:
            self.assertEqual(held(), {})
        body.close()
        self.assertEqual(held(), {})
        self.assertEqual(seen, dict.fromkeys(
            ['call', 'iter', 'first', 'second', 'close'], ROUTE))

    def test_bodies_may_interleave(self):
        def app(environ, start_response):
            for _ in range(3):
                seen.append(held()['route'])
                yield b''
        seen = []
        bodies = [iter(WSGIMiddleware(app, lambda environ, n=n: n)(
            environ(), start_response)) for n in ('/a', '/b')]
        for _ in range(3):
            for body in bodies:
                next(body)
        self.assertEqual(seen, ['GET /a', 'GET /b'] * 3)

    def test_exceptions_pass(self):
        def fail_in_call(environ, start_response):
            raise error

        def fail_in_body(environ, start_response):
            yield b''
            raise error
        error = KeyError('it')
        with self.assertRaises(KeyError) as caught:
            self.run_app(fail_in_call)
        self.assertIs(caught.exception, error)
        body = iter(self.run_app(fail_in_body))
        next(body)
        with self.assertRaises(KeyError) as caught:
            next(body)
        self.assertIs(caught.exception, error)
        self.assertEqual(held(), {})

    def test_server_gets_bodies_that_it_sends_itself(self):
        file = wsgiref.util.FileWrapper(io.BytesIO(b'file'))
        for body in [b'one'], (b'one', b'two'), file:
            app = WSGIMiddleware(lambda environ, start_response: body)
            self.assertIs(app(environ(**{
                'wsgi.file_wrapper': wsgiref.util.FileWrapper}),
                start_response), body)

    def test_file_wrapper_may_be_a_function(self):
        app = WSGIMiddleware(
            lambda environ, start_response:
            environ['wsgi.file_wrapper'](io.BytesIO(b'file')))
        body = app(environ(**{'wsgi.file_wrapper': lambda file: file}),
                   start_response)
        self.assertEqual(list(body), [b'file'])
        body.close()

    def test_length_is_kept(self):
        sized = self.run_app(lambda environ, start_response: {b'only': None})
        self.assertEqual(len(sized), 1)
        unsized = self.run_app(lambda environ, start_response: iter([b'']))
        self.assertFalse(hasattr(unsized, '__len__'))

    def test_write(self):
        def app(environ, start_response):
            write = start_response('200 OK', [('Content-Type', 'text/plain')])
            write(b'written, ')
            return iter([b'returned'])
        out = io.BytesIO()
        wsgiref.handlers.SimpleHandler(
            io.BytesIO(), out, io.StringIO(), environ()).run(
                WSGIMiddleware(app))
        self.assertTrue(out.getvalue().endswith(b'\r\n\r\nwritten, returned'))

    def test_it_obeys_the_protocol(self):
        def app(environ, start_response):
            start_response('200 OK', [('Content-Type', 'text/plain')])
            return chunks()
        app = WSGIMiddleware(wsgiref.validate.validator(app))
        out = io.BytesIO()
        wsgiref.handlers.SimpleHandler(
            io.BytesIO(), out, io.StringIO(), environ()).run(
                wsgiref.validate.validator(app))
        self.assertTrue(out.getvalue().endswith(b'chunk\nchunk\n'))


class ValuesTest(unittest.TestCase):

    def value(self, method='GET', route=None):
        def app(environ, start_response):
            seen.append(held())
            return []
        seen = []
        WSGIMiddleware(app, route)(environ(REQUEST_METHOD=method),
                                   start_response)
        return seen[0]['route']

    def test_values(self):
        self.assertEqual(self.value(), 'GET')
        self.assertEqual(self.value('POST', template), 'POST /things/{id}')
        self.assertEqual(self.value('GET', lambda environ: None),
                         'GET (none)')

    def test_clients_cannot_make_up_labels(self):
        for method in 'BREW', 'get', '', 'GET /':
            self.assertEqual(self.value(method), '(other)')

    def test_method_is_known_while_the_route_is_looked_up(self):
        def route(environ):
            seen.append(held())
            return '/'
        seen = []
        self.value('GET', route)
        self.assertEqual(seen, [{'route': 'GET'}])

    def test_failing_route_fails_no_request(self):
        def route(environ):
            raise KeyError(environ['PATH_INFO'])
        with self.assertWarnsRegex(RuntimeWarning, 'raised KeyError$'):
            self.assertEqual(self.value('GET', route), 'GET')

    def test_what_is_no_route(self):
        for route, message in ((flask_route, r'route=flask_route\(app\)'),
                               (starlette_route, 'has to be called'),
                               ('/things', 'a function of the request')):
            for middleware in WSGIMiddleware, ASGIMiddleware:
                with self.assertRaisesRegex(TypeError, message):
                    middleware(None, route)
        with self.assertWarnsRegex(RuntimeWarning, 'returned dict'):
            self.assertEqual(self.value('GET', lambda environ: {}), 'GET')

    def test_name_of_the_label(self):
        seen = []
        app = WSGIMiddleware(
            lambda environ, start_response: seen.append(held()) or [],
            template, label='url')
        app(environ(), start_response)
        self.assertEqual(seen, [{'url': 'GET /things/{id}'}])
        for middleware in WSGIMiddleware, ASGIMiddleware:
            with self.assertRaises(ValueError):
                middleware(None, label='state')


class ASGITest(unittest.TestCase):

    def run_app(self, app, route=template, **changes):
        async def main():
            try:
                return await ASGIMiddleware(app, route)(
                    scope(**changes), None, None)
            finally:
                self.assertEqual(held(), {})
        return asyncio.run(main())

    def seen_by(self, **changes):
        async def app(scope, receive, send):
            return held()
        return self.run_app(app, **changes)

    def test_scopes(self):
        self.assertEqual(self.seen_by(), ROUTE)
        self.assertEqual(self.seen_by(method='BREW'),
                         {'route': '(other) /things/{id}'})
        self.assertEqual(self.seen_by(type='websocket'),
                         {'route': 'WEBSOCKET /things/{id}'})
        self.assertEqual(self.seen_by(type='lifespan'), {})

    def test_arguments_pass(self):
        async def app(*args):
            return args
        args = scope(), object(), object()
        passed = asyncio.run(ASGIMiddleware(app)(*args))
        for one, other in zip(args, passed, strict=True):
            self.assertIs(one, other)

    def test_exceptions_pass(self):
        async def app(scope, receive, send):
            raise error
        error = KeyError('it')
        with self.assertRaises(KeyError) as caught:
            self.run_app(app)
        self.assertIs(caught.exception, error)

    def test_tasks_and_threads_inherit(self):
        async def app(scope, receive, send):
            async def task():
                return held()
            return (await asyncio.create_task(task()),
                    await asyncio.to_thread(held))
        self.assertEqual(self.run_app(app), (ROUTE, ROUTE))

    def test_requests_do_not_mix(self):
        async def app(scope, receive, send):
            for _ in range(5):
                seen.add((scope['path'], held()['route']))
                await asyncio.sleep(0)

        async def main():
            middleware = ASGIMiddleware(app, lambda scope: scope['path'])
            await asyncio.gather(*[middleware(scope(path=path), None, None)
                                   for path in paths])
        seen = set()
        paths = [f'/{i}' for i in range(10)]
        asyncio.run(main())
        self.assertEqual(seen, {(path, f'GET {path}') for path in paths})
