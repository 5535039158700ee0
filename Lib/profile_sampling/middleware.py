"""Labels for web requests and jobs.

    app.wsgi_app = WSGIMiddleware(app.wsgi_app)     # Flask
    app = ASGIMiddleware(app)                       # FastAPI, Starlette
    label_celery_tasks()

Samples then tell the route template of the request, as in
route='GET /users/{id}', or the name of the task, as in job='shop.tasks.bill'.

This file owns when such labels are on.  It must not know how a framework
names its routes, which is the business of _routes.
"""

from profile_sampling import _labels
from profile_sampling._routes import (
    django_route, finder, flask_route, starlette_route)

__all__ = ['ASGIMiddleware', 'WSGIMiddleware', 'django_route', 'flask_route',
           'label_celery_tasks', 'starlette_route']

# Clients may send any text: a label for each would be without bound.
METHODS = frozenset(['CONNECT', 'DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH',
                     'POST', 'PUT', 'QUERY', 'TRACE'])
OTHER_METHOD = '(other)'
NO_ROUTE = '(none)'


class _Middleware:

    def __init__(self, app, route=None, label='route'):
        self.app = app
        self._find = finder(app) if route is None else route
        self._name = label
        self._label('')         # the name may be wrong

    def _label(self, text):
        return _labels.label(**{self._name: text})

    def _route(self, method, request):
        """The labels of a request; with the method while it is looked up."""
        with self._label(method):
            return self._label(self._text(method, request))

    def _text(self, method, request):
        if self._find is None:
            return method
        try:
            template = self._find(request)
        except Exception as exc:
            # Labels are not worth a failed request.  The text is the same
            # for all requests, so that warnings keep it once.
            import warnings
            warnings.warn(f'{self._find!r} raised {type(exc).__name__}',
                          RuntimeWarning)
            return method
        return f'{method} {NO_ROUTE if template is None else template}'


def _known(method):
    return method if method in METHODS else OTHER_METHOD


class WSGIMiddleware(_Middleware):
    """A WSGI application whose samples carry their request's route.

    app    the WSGI application; those of Flask and Django are recognised
    route  what finds the route: called with the environ, it returns a
           template such as '/users/<id>', or None.  By default the
           application's framework is asked; for one that is not recognised
           the label is the method only
    label  name of the label

    The value is the method, a space and the template; '(none)' stands for
    the template if no route matches.  It holds while the application is
    called and while the body is made, step by step and in close(), but not
    in the server between the steps.
    """

    def __call__(self, environ, start_response):
        labels = self._route(_known(environ['REQUEST_METHOD']), environ)
        with labels:
            body = self.app(environ, start_response)
        if _is_for_server(body, environ):
            return body
        kind = _SizedBody if hasattr(body, '__len__') else _Body
        return kind(body, labels)


def _is_for_server(body, environ):
    """Does the server treat it better if it gets it as it is?

    No code of the application runs while these are sent.
    """
    if isinstance(body, (list, tuple)):
        return True
    file_wrapper = environ.get('wsgi.file_wrapper')
    return isinstance(file_wrapper, type) and isinstance(body, file_wrapper)


class _Body:
    """The body of a response, with labels at each step."""

    def __init__(self, body, labels):
        self._body = body
        self._labels = labels
        self._iterator = None

    def __iter__(self):
        with self._labels:
            self._iterator = iter(self._body)
        return self

    def __next__(self):
        with self._labels:
            return next(self._iterator)

    def close(self):
        close = getattr(self._body, 'close', None)
        if close is not None:
            with self._labels:
                close()


class _SizedBody(_Body):
    """Servers take the length of the response from a body of one item."""

    def __len__(self):
        return len(self._body)


class ASGIMiddleware(_Middleware):
    """An ASGI application whose samples carry their request's route.

    The arguments are those of WSGIMiddleware; *route* is called with the
    scope, and applications of Starlette, FastAPI and Django are recognised.

    HTTP requests and websockets are labelled, the latter with the method
    'WEBSOCKET'.  What the application starts inherits the label: tasks, and
    functions that it runs in threads by asyncio.to_thread() or anyio.
    """

    async def __call__(self, scope, receive, send):
        if scope['type'] == 'http':
            labels = self._route(_known(scope['method']), scope)
        elif scope['type'] == 'websocket':
            labels = self._route('WEBSOCKET', scope)
        else:
            return await self.app(scope, receive, send)
        with labels:
            return await self.app(scope, receive, send)


def label_celery_tasks(label='job'):
    """Label the samples of each Celery task with its name.

    Call it where the application is made, so that the processes of a pool
    inherit it; called again, it changes nothing.  The label holds from
    task_prerun to task_postrun, which Celery sends however the task ends.

    Raise ValueError if *label* is a name that is the profiler's own.
    """
    from celery import signals
    _labels.label(**{label: ''})
    running = {}            # by id of the request, which is alive meanwhile

    def begin(task, **_):
        labels = _labels.label(**{label: task.name})
        labels.__enter__()
        running[id(task.request)] = labels

    def end(task, **_):
        labels = running.pop(id(task.request), None)
        if labels is not None:
            labels.__exit__(None, None, None)

    for signal, receiver in ((signals.task_prerun, begin),
                             (signals.task_postrun, end)):
        signal.connect(receiver, weak=False, dispatch_uid=__name__)
