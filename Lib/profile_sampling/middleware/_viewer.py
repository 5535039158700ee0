"""The live page of a process, served by its own application."""

import asyncio
import inspect
import os
import threading

THREAD = 'profile_sampling.Viewer'
# When nobody has asked for so long nothing is sampled any more.
_LEASE_S = 15.0


class Viewer:
    """An application that answers below *path* with its live page.

    app    the application, of WSGI or ASGI: which one is seen from it
    check  who may see it: called with the environ or the scope of a request,
           returns True for those who may, and nobody else.  There is no
           default.  Of an ASGI application it may be a coroutine function
    path   where the page is.  <path>/debug/pprof/profile?seconds=N is what
           "go tool pprof" and collectors ask for

    Nothing is sampled before the first request that may see it, and nothing
    15 seconds after the last one.  Meanwhile there are two threads: one that
    hands over what is sampled, and one that adds it up.

    Of a server with several processes the page shows whichever answers;
    "top --page" shows the one that is named.
    """

    def __new__(cls, app, *, check, path='/profile'):
        if cls is Viewer:
            cls = _ASGIViewer if _is_asgi(app) else _WSGIViewer
        return super().__new__(cls)

    def __init__(self, app, *, check, path='/profile'):
        if not callable(check):
            raise TypeError('check must be a function of the request, not '
                            f'{type(check).__name__}')
        if not path.startswith('/') or path.endswith('/'):
            raise ValueError('path must begin with a slash and not end with '
                             f'one, not {path!r}')
        self.app = app
        self._check = check
        self._path = path
        self._seconds = None
        self._lock = threading.Lock()

    def _is_mine(self, path):
        return path == self._path or path.startswith(f'{self._path}/')

    def _respond(self, method, path, query, may):
        """Return a Response; *may* is what the check has returned."""
        from profile_sampling._live import responses
        from profile_sampling._reach.processes import Refusal
        # Whatever else is true, such as a coroutine, is a mistake.
        if may is not True:
            return responses.refusal(403, 'You may not see this.')
        if method != 'GET':
            return responses.refusal(405, 'There is only GET.')
        if path == self._path:
            # Addresses in the page are relative to this one.
            found = responses.refusal(307, 'The page is below.')
            return found._replace(headers=[*found.headers, (
                'Location', f'{self._path.rpartition("/")[2]}/')])
        try:
            return responses.respond(self._now(),
                                     path.removeprefix(f'{self._path}/'),
                                     query)
        except (Refusal, NotImplementedError) as exc:
            return responses.refusal(503, str(exc))

    def _now(self):
        """Return the Seconds, which begin if there are none."""
        from profile_sampling._live.seconds import Seconds
        from profile_sampling._reach.processes import Process
        with self._lock:
            known = self._seconds
            if (known is None or known.is_over
                    or known.process.pid != os.getpid()):
                process = Process(os.getpid())
                process.check()
                known = self._seconds = Seconds(process, lease_s=_LEASE_S)
                threading.Thread(target=_run, args=(known,),
                                 name=THREAD,
                                 daemon=True).start()
            return known


def _run(seconds):
    from profile_sampling._reach.processes import Refusal
    try:
        seconds.run()
    except Refusal as exc:
        seconds.screen.ended = exc.text


def _is_asgi(app):
    return any([inspect.iscoroutinefunction(its)
                for its in (app, getattr(app, '__call__', None))])


class _WSGIViewer(Viewer):

    def __call__(self, environ, start_response):
        path = environ.get('PATH_INFO', '')
        if not self._is_mine(path):
            return self.app(environ, start_response)
        response = self._respond(
            environ['REQUEST_METHOD'], path, environ.get('QUERY_STRING', ''),
            self._check(environ))
        from http import HTTPStatus
        phrase = HTTPStatus(response.status).phrase
        start_response(f'{response.status} {phrase}', response.headers)
        return [response.body]


class _ASGIViewer(Viewer):

    async def __call__(self, scope, receive, send):
        root = scope.get('root_path', '')
        path = scope.get('path', '').removeprefix(root)
        if scope['type'] != 'http' or not self._is_mine(path):
            return await self.app(scope, receive, send)
        may = self._check(scope)
        if inspect.isawaitable(may):
            may = await may
        # It may take as long as was asked for: the loop goes on.
        response = await asyncio.to_thread(
            self._respond, scope['method'], path,
            scope.get('query_string', b'').decode('latin-1'), may)
        await send({'type': 'http.response.start', 'status': response.status,
                    'headers': [(name.lower().encode(), value.encode())
                                for name, value in response.headers]})
        await send({'type': 'http.response.body', 'body': response.body})
