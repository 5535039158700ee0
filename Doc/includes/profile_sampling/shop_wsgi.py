"""A WSGI application without a framework, profiled by route."""

import hashlib
import re
from wsgiref.util import setup_testing_defaults

import profile_sampling
from profile_sampling.middleware import WSGIMiddleware

ROUTES = {'/users/<id>': re.compile('/users/[0-9]+'),
          '/search': re.compile('/search')}


def route(environ):
    """Return the template of the request's route, None if there is none."""
    for template, pattern in ROUTES.items():
        if pattern.fullmatch(environ['PATH_INFO']):
            return template
    return None


def application(environ, start_response):
    rounds = {'/users/<id>': 2_000, '/search': 6_000}.get(route(environ), 0)
    digest = hashlib.pbkdf2_hmac('sha256', b'shop', b'', rounds + 1)
    start_response('200 OK', [('Content-Type', 'text/plain')])
    return [digest.hex().encode()]


application = WSGIMiddleware(application, route)


def get(path):
    """Stand in for a server and a client: make one request."""
    environ = {'PATH_INFO': path}
    setup_testing_defaults(environ)
    list(application(environ, lambda status, headers: None))


if __name__ == '__main__':
    with profile_sampling.profile(rate_hz=2000) as session:
        for number in range(200):
            get(f'/users/{number}')
            get('/search')
        get('/favicon.ico')
    for row in session.profile.label_values('route'):
        print(f'{row.wall_ns / 1e6:8.1f} ms  {row.value}')
