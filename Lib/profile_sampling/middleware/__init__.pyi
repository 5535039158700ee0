"""The types of profile_sampling.middleware.

Applications are Any: what WSGI and ASGI call one, frameworks type each in a
way of its own.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Self

# Of an environ or a scope, the template of its route.
_Route = Callable[[Any], str | None]

class _Middleware:
    app: Any
    def __init__(self, app: Any, route: _Route | None = None,
                 label: str = 'route') -> None: ...

class WSGIMiddleware(_Middleware):
    def __call__(self, environ: dict[str, Any],
                 start_response: Callable[..., Any]) -> Iterable[bytes]: ...

class ASGIMiddleware(_Middleware):
    async def __call__(self, scope: Any, receive: Any, send: Any) -> Any: ...

class Viewer:
    app: Any
    def __new__(cls, app: Any, *,
                check: Callable[[Any], bool | Awaitable[bool]],
                path: str = '/profile') -> Self: ...
    # (environ, start_response) of WSGI; (scope, receive, send) of ASGI.
    def __call__(self, *arguments: Any) -> Any: ...

def flask_route(app: Any) -> _Route: ...
def django_route(app: Any = None) -> _Route: ...
def starlette_route(app: Any) -> _Route: ...
def label_celery_tasks(label: str = 'job') -> None: ...
