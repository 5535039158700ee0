"""Labels for ASGI applications.

This file owns when the label of a request is on.
"""

from profile_sampling.middleware._requests import Middleware, known


class ASGIMiddleware(Middleware):
    """An ASGI application whose samples carry their request's route.

    The arguments are those of WSGIMiddleware; *route* is called with the
    scope, and applications of Starlette, FastAPI and Django are recognised.

    HTTP requests and websockets are labelled, the latter with the method
    'WEBSOCKET'.  What the application starts inherits the label: tasks, and
    functions that it runs in threads by asyncio.to_thread() or anyio.
    """

    async def __call__(self, scope, receive, send):
        if scope['type'] == 'http':
            labels = self._route(known(scope['method']), scope)
        elif scope['type'] == 'websocket':
            labels = self._route('WEBSOCKET', scope)
        else:
            return await self.app(scope, receive, send)
        with labels:
            return await self.app(scope, receive, send)
