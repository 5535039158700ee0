"""The live page in an application: who sees it, and what is left."""

import asyncio
import threading
import unittest
from unittest import mock

from profile_sampling.middleware import Viewer, _viewer

from ..support import targets
from .test_middleware import environ, scope, tearDownModule

PROFILE = '/profile/debug/pprof/profile'


def is_admin(request):
    headers = dict(request.get('headers', ()))
    return 'HTTP_ADMIN' in request or b'admin' in headers


def application(environ, start_response):
    start_response('200 OK', [])
    return [b'application']


async def asgi_application(scope, receive, send):
    await send({'type': 'http.response.start', 'status': 200, 'headers': []})
    await send({'type': 'http.response.body', 'body': b'application'})


def get(viewer, path, query='', **changes):
    """Return the status, the headers and the body that WSGI gives."""
    answers = []
    body = viewer(environ(PATH_INFO=path, QUERY_STRING=query) | changes,
                  lambda *answer: answers.append(answer))
    (status, headers), = answers
    return int(status.split()[0]), dict(headers), b''.join(body)


def asgi_get(viewer, path, query=b'', **changes):
    sent = []

    async def send(message):
        sent.append(message)
    asyncio.run(viewer(scope(path=path, query_string=query) | changes, None,
                       send))
    start, body = sent
    return start['status'], dict(start['headers']), body['body']


def names():
    return {thread.name for thread in threading.enumerate()}


class ViewerTest(unittest.TestCase):

    def tearDown(self):
        # The next test finds nobody who watches.
        for viewer in _viewers:
            if viewer._seconds is not None:
                viewer._seconds.stop()
        _viewers.clear()
        targets.until(lambda: _viewer.THREAD not in names())

    def viewer(self, app=application, check=is_admin, **more):
        _viewers.append(Viewer(app, check=check, **more))
        return _viewers[-1]

    def test_a_check_has_to_be_given(self):
        with self.assertRaises(TypeError):
            Viewer(application)
        for check in None, True:
            with self.assertRaises(TypeError):
                Viewer(application, check=check)
        for path in 'profile', '/profile/', '':
            with self.assertRaises(ValueError):
                self.viewer(path=path)

    def test_nothing_before_somebody_may_see_it(self):
        viewer = self.viewer()
        self.assertEqual(get(viewer, '/other')[2], b'application')
        self.assertEqual(get(viewer, '/profiles')[2], b'application')
        self.assertEqual(get(viewer, '/profile/live')[0], 403)
        self.assertNotIn(_viewer.THREAD, names())

    def test_only_true_is_yes(self):
        async def anybody(request):
            return True
        for check in anybody, lambda request: 1, lambda request: None:
            viewer = self.viewer(check=check)
            with mock.patch('warnings.warn'), self.subTest(check):
                self.assertEqual(get(viewer, '/profile/')[0], 403)
        # A check that fails is a fault of the application's, as any other.
        with self.assertRaises(ZeroDivisionError):
            get(self.viewer(check=lambda request: 1 / 0), '/profile/')

    def test_page_and_profile(self):
        viewer = self.viewer()
        status, headers, _ = get(viewer, '/profile', HTTP_ADMIN='1')
        self.assertEqual((status, headers['Location']), (307, 'profile/'))
        status, headers, body = get(viewer, '/profile/', HTTP_ADMIN='1')
        self.assertEqual(status, 200)
        self.assertIn(b"connect-src 'self'", body)
        self.assertEqual(headers['X-Frame-Options'], 'DENY')
        status, _, body = get(viewer, PROFILE, 'seconds=1', HTTP_ADMIN='1')
        self.assertEqual((status, body[:2]), (200, b'\x1f\x8b'))
        self.assertEqual(get(viewer, '/profile/live', HTTP_ADMIN='1')[0], 200)
        self.assertEqual(get(viewer, '/profile/live', REQUEST_METHOD='POST',
                             HTTP_ADMIN='1')[0], 405)

    def test_asgi(self):
        async def check(scope):
            return is_admin(scope)
        viewer = self.viewer(asgi_application, check)
        admin = {'headers': [(b'admin', b'1')]}
        self.assertEqual(asgi_get(viewer, '/x')[2], b'application')
        self.assertEqual(asgi_get(viewer, '/profile/')[0], 403)
        self.assertEqual(asgi_get(viewer, '/profile/', **admin)[0], 200)
        status, headers, body = asgi_get(viewer, PROFILE, b'seconds=1',
                                         **admin)
        self.assertEqual((status, body[:2]), (200, b'\x1f\x8b'))
        self.assertEqual(int(headers[b'content-length']), len(body))

    def test_it_ends_when_nobody_asks(self):
        with mock.patch.object(_viewer, '_LEASE_S', 1.0):
            viewer = self.viewer()
            self.assertEqual(
                get(viewer, '/profile/live', HTTP_ADMIN='1')[0], 200)
            self.assertIn(_viewer.THREAD, names())
            targets.until(lambda: _viewer.THREAD not in names())
            # And begins anew.
            self.assertEqual(
                get(viewer, '/profile/live', HTTP_ADMIN='1')[0], 200)


_viewers = []


if __name__ == '__main__':
    unittest.main()
