"""Labels for web requests and jobs.

    app.wsgi_app = WSGIMiddleware(app.wsgi_app)     # Flask
    app = ASGIMiddleware(app)                       # FastAPI, Starlette
    label_celery_tasks()
    app = Viewer(app, check=is_admin)               # either kind: a live page

Samples then tell the route template of the request, as in
route='GET /users/{id}', or the name of the task, as in job='shop.tasks.bill'.
"""

from profile_sampling.middleware._asgi import ASGIMiddleware
from profile_sampling.middleware._celery import label_celery_tasks
from profile_sampling.middleware._routes import (
    django_route, flask_route, starlette_route)
from profile_sampling.middleware._viewer import Viewer
from profile_sampling.middleware._wsgi import WSGIMiddleware

__all__ = ['ASGIMiddleware', 'Viewer', 'WSGIMiddleware', 'django_route',
           'flask_route', 'label_celery_tasks', 'starlette_route']
