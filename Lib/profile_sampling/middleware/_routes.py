"""Route templates of web frameworks.

Each function here returns one that takes a WSGI environ or an ASGI scope and
returns the template, or None.  Frameworks are imported only in there: who
has such an application has imported its framework.
"""

# So many middlewares are looked through for the application.
MAX_WRAPPERS = 32


def finder(app):
    """Return what finds the routes of *app*; None: it is not recognised."""
    for _ in range(MAX_WRAPPERS):
        app = getattr(app, '__self__', app)         # app.wsgi_app
        for framework, attribute, make in _FRAMEWORKS:
            if hasattr(app, attribute) and _is_from(framework, app):
                return make(app)
        if hasattr(app, 'mounts'):                  # it dispatches by path
            return None
        app = getattr(app, 'app', None)
    return None


def flask_route(app):
    """Routes of a Flask application, such as '/users/<int:id>'."""
    def find(environ):
        from werkzeug.exceptions import HTTPException
        request = app.request_class(environ, populate_request=False)
        try:
            rule, _ = app.create_url_adapter(request).match(return_rule=True)
        except HTTPException:
            return None
        return rule.rule
    return find


def django_route(app=None):
    """Routes of Django's ROOT_URLCONF, such as '/users/<int:id>/'.

    *app* does not matter: there is one Django in a process.
    """
    def find(environ_or_scope):
        from django.urls import Resolver404, get_resolver
        path = _django_path(environ_or_scope)
        try:
            with _django_language(path):
                return '/' + get_resolver().resolve(path).route
        except Resolver404:
            return None
    return find


def starlette_route(app):
    """Routes of a Starlette or FastAPI application, such as '/users/{id}'."""
    def find(scope):
        root_path = getattr(app, 'root_path', '') or scope.get('root_path', '')
        return _starlette_match(app.routes, scope | {'root_path': root_path})
    return find


_FRAMEWORKS = (('flask', 'wsgi_app', flask_route),
               ('django', 'resolve_request', django_route),
               ('starlette', 'routes', starlette_route))


def _is_from(framework, app):
    return any([cls.__module__.partition('.')[0] == framework
                for cls in type(app).__mro__])


def _django_path(environ_or_scope):
    if 'wsgi.version' in environ_or_scope:
        from django.core.handlers.wsgi import get_path_info
        return get_path_info(environ_or_scope)
    from django.core.handlers.asgi import get_script_prefix
    return environ_or_scope['path'].removeprefix(
        get_script_prefix(environ_or_scope))


def _django_language(path):
    """The language in which i18n_patterns() know the path."""
    from django.conf import settings
    from django.utils import translation
    return translation.override(translation.get_language_from_path(path)
                                or settings.LANGUAGE_CODE)


def _starlette_match(routes, scope):
    from starlette.routing import Match
    for route in _flat(routes):
        match, changes = route.matches(scope)
        if match is not Match.FULL:
            continue
        template = getattr(route, 'path_format', '')    # a Host has none
        if not getattr(route, 'routes', None):
            return template
        inner = _starlette_match(route.routes, scope | changes)
        if inner is None:
            return None
        return template.removesuffix('/{path}') + inner
    return None


def _flat(routes):
    for route in routes:
        # FastAPI may keep an included router as one route.
        included = getattr(route, 'effective_route_contexts', None)
        if included is None:
            yield route
        else:
            for context in included():
                yield context.starlette_route or context
