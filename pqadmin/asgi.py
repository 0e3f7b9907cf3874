"""The ASGI application: pages, the API, static files and the live socket."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "pqadmin.settings")
# Before the imports below: they need the apps.
django.setup(set_prefix=False)

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import WebsocketDenier
from django.conf import settings
from django.urls import path, re_path

from pqadmin.api import long_polls
from pqadmin.api.cors import Cors
from pqadmin.api.fast_path import FastPath
from pqadmin.api.handler import ApiHandler, beside
from pqadmin.conf.proxy import TrustedProxy
from pqadmin.limits.body_size import Bodies
from pqadmin.live.socket_consumer import LiveConsumer
from pqadmin.server import assets
from pqadmin.server.admission import Admission
from pqadmin.server.handler import SyncHandler, ThreadPool
from pqadmin.server.health import Health
from pqadmin.server.origin import SameOrigin
from pqadmin.wall.socket_consumer import WallConsumer

#: Ends the long polls of the API, when the site stops.
stop_waits = long_polls.stop
pages = ThreadPool(SyncHandler(), threads=settings.PQADMIN_VIEW_THREADS)
routes = [
    path("live/", LiveConsumer.as_asgi(), name="live"),
    # Below the wall's own address, where its cookie is sent.
    path("wall/<slug:slug>/live/", WallConsumer.as_asgi(), name="wall-live"),
    re_path("", WebsocketDenier.as_asgi()),
]
sockets = SameOrigin(AuthMiddlewareStack(URLRouter(routes)))
api = Cors(ApiHandler(), settings.PQADMIN_CORS_ORIGINS)
admitted = Admission(
    ProtocolTypeRouter({"http": beside(pages, api), "websocket": sockets}),
    per_address=settings.PQADMIN_REQUESTS_PER_ADDRESS,
    per_session=settings.PQADMIN_REQUESTS_PER_PERSON,
    sockets_per_address=settings.PQADMIN_CONNECTIONS_PER_ADDRESS,
    cookie=settings.SESSION_COOKIE_NAME,
)
# Files are not counted: a page has more of them than a person may have requests under way, and by HTTP/2 a browser
# asks for all at once.
site = ProtocolTypeRouter({"http": assets.serve(admitted), "websocket": admitted})
proxied = TrustedProxy(site, trusted=settings.PQADMIN_TRUSTED_PROXY)
application = Bodies(Health(proxied))
#: Answers usual requests of the API as `application` does.
fast = FastPath(proxied, admitted, api)
