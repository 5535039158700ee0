"""Labels for ASGI applications."""

from profile_sampling._recording.latencies import is_collecting
from profile_sampling.middleware._requests import Middleware, known


class ASGIMiddleware(Middleware):
    """An ASGI application whose samples carry their request's route.

    The arguments are those of WSGIMiddleware; *route* is called with the
    scope, and applications of Starlette, FastAPI and Django are recognised.

    HTTP requests and websockets are labelled, the latter with the method
    'WEBSOCKET'.  What the application starts inherits the label: tasks, and
    functions that it runs in threads by asyncio.to_thread() or anyio.

    The latency of an HTTP request ends when the last part of its answer has
    been sent.  What the application still does then, such as Starlette's
    background tasks, has the label 'answered' in addition.
    """

    async def __call__(self, scope, receive, send):
        if scope['type'] == 'http':
            return await self._timed(
                *self._watched(known(scope['method']), scope), scope, receive,
                send)
        if scope['type'] == 'websocket':
            labels = self._route('WEBSOCKET', scope)
        else:
            return await self.app(scope, receive, send)
        with labels:
            return await self.app(scope, receive, send)

    async def _timed(self, labels, watch, scope, receive, send):
        try:
            with labels:
                if is_collecting():
                    send = _answering(send, watch)
                return await self.app(scope, receive, send)
        finally:
            watch.stop()


def _answering(send, watch):
    """Return a *send* that stops the watch when all has been sent."""
    async def send_and_look(message):
        await send(message)
        if (message['type'] == 'http.response.body'
                and not message.get('more_body')):
            watch.answered()
    return send_and_look
