"""A FastAPI application, profiled by route."""

import asyncio
import hashlib

import fastapi
import profile_sampling
from profile_sampling.middleware import ASGIMiddleware

app = fastapi.FastAPI()
app.add_middleware(ASGIMiddleware)


@app.get('/users/{id}')
async def user(id: int):
    return hashlib.pbkdf2_hmac('sha256', b'shop', b'', 2_000).hex()


@app.get('/search')
async def search():
    await asyncio.sleep(0.01)               # a database, say
    return hashlib.pbkdf2_hmac('sha256', b'shop', b'', 2_000).hex()


async def get(path):
    """Stand in for a server and a client: make one request."""
    async def receive():
        return {'type': 'http.request', 'body': b'', 'more_body': False}

    async def send(message):
        pass

    scope = {'type': 'http', 'asgi': {'version': '3.0'}, 'method': 'GET',
             'path': path, 'raw_path': path.encode(), 'root_path': '',
             'scheme': 'http', 'query_string': b'', 'headers': [],
             'server': ('localhost', 80)}
    await app(scope, receive, send)


async def main():
    for number in range(100):
        await asyncio.gather(get(f'/users/{number}'), get('/search'))


if __name__ == '__main__':
    with profile_sampling.profile(rate_hz=2000) as session:
        asyncio.run(main())
    for row in session.profile.label_values('route'):
        print(f'{row.wall_ns / 1e6:8.1f} ms wall {row.cpu_ns / 1e6:8.1f} ms '
              f'CPU  {row.value}')
