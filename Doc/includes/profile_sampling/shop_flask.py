"""A Flask application, profiled by route."""

import hashlib

import flask
import profile_sampling
from profile_sampling.middleware import WSGIMiddleware

app = flask.Flask(__name__)
app.wsgi_app = WSGIMiddleware(app.wsgi_app)


@app.get('/users/<int:id>')
def user(id):
    return hashlib.pbkdf2_hmac('sha256', b'shop', b'', 2_000).hex()


@app.get('/search')
def search():
    return hashlib.pbkdf2_hmac('sha256', b'shop', b'', 6_000).hex()


if __name__ == '__main__':
    client = app.test_client()
    with profile_sampling.profile(rate_hz=2000) as session:
        for number in range(200):
            client.get(f'/users/{number}')
            client.get('/search')
    for row in session.profile.label_values('route'):
        print(f'{row.wall_ns / 1e6:8.1f} ms  {row.value}')
