"""Labels for WSGI applications."""

from profile_sampling.middleware._requests import Middleware, known


class WSGIMiddleware(Middleware):
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
    in the server between the steps.  The latency of a request ends when its
    body is exhausted or closed.
    """

    def __call__(self, environ, start_response):
        labels, watch = self._watched(known(environ['REQUEST_METHOD']),
                                      environ)
        try:
            with labels:
                body = self.app(environ, start_response)
        except BaseException:
            watch.stop()
            raise
        if _is_for_server(body, environ):
            watch.stop()
            return body
        kind = _SizedBody if hasattr(body, '__len__') else _Body
        return kind(body, labels, watch)


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

    def __init__(self, body, labels, watch):
        self._body = body
        self._labels = labels
        self._watch = watch
        self._iterator = None

    def __iter__(self):
        with self._labels:
            self._iterator = iter(self._body)
        return self

    def __next__(self):
        try:
            with self._labels:
                return next(self._iterator)
        except BaseException:
            # It is exhausted, or has failed.
            self._watch.stop()
            raise

    def close(self):
        # A server that gives up calls nothing else.
        self._watch.stop()
        close = getattr(self._body, 'close', None)
        if close is not None:
            with self._labels:
                close()


class _SizedBody(_Body):
    """Servers take the length of the response from a body of one item."""

    def __len__(self):
        return len(self._body)
