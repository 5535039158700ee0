"""The label of a request."""

from profile_sampling import _clock
from profile_sampling._recording import labels
from profile_sampling._recording.requests import Watch
from profile_sampling.middleware._routes import (
    django_route, finder, flask_route, starlette_route)

# Clients may send any text: a label for each would be without bound.
METHODS = frozenset(['CONNECT', 'DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH',
                     'POST', 'PUT', 'QUERY', 'TRACE'])
OTHER_METHOD = '(other)'
NO_ROUTE = '(none)'
_FINDERS = flask_route, django_route, starlette_route


class Middleware:

    def __init__(self, app, route=None, label='route'):
        self.app = app
        self._find = finder(app) if route is None else _checked(route)
        self._name = label
        self._label('')         # the name may be wrong

    def _label(self, text):
        return labels.label(**{self._name: text})

    def _route(self, method, request):
        """The labels of a request; with the method while it is looked up."""
        with self._label(method):
            return self._label(self._text(method, request))

    def _watched(self, method, request):
        """The same, and the Watch of its latency, which looking it up is
        part of."""
        begin_ns = _clock.monotonic_ns()
        block = self._route(method, request)
        return block, Watch(block._changes, begin_ns)

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
        if template is not None and not isinstance(template, str):
            import warnings
            warnings.warn(f'{self._find!r} returned '
                          f'{type(template).__name__}, not str or None',
                          RuntimeWarning)
            return method
        return f'{method} {NO_ROUTE if template is None else template}'


def _checked(route):
    if route in _FINDERS:
        name = route.__name__
        raise TypeError(f'route={name} has to be called: route={name}(app)')
    if not callable(route):
        raise TypeError('route must be a function of the request, or None, '
                        f'not {type(route).__name__}')
    return route


def known(method):
    return method if method in METHODS else OTHER_METHOD
