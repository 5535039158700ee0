"""A Django application in one file, profiled by route."""

import hashlib

import django.conf
import profile_sampling
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse
from django.test import RequestFactory
from django.urls import path
from profile_sampling.middleware import WSGIMiddleware

django.conf.settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=['*'])


def user(request, id):
    digest = hashlib.pbkdf2_hmac('sha256', b'shop', b'', 2_000)
    return HttpResponse(digest.hex())


urlpatterns = [path('users/<int:id>', user)]
application = WSGIMiddleware(get_wsgi_application())


if __name__ == '__main__':
    with profile_sampling.profile(rate_hz=2000) as session:
        for number in range(200):
            request = RequestFactory().get(f'/users/{number}')
            list(application(request.environ, lambda status, headers: None))
    for row in session.profile.label_values('route'):
        print(f'{row.wall_ns / 1e6:8.1f} ms  {row.value}')
