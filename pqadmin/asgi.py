"""The ASGI application: pages, static files and the live socket."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "pqadmin.settings")
django.setup(set_prefix=False)

from channels.auth import AuthMiddlewareStack  # noqa: E402 # after setup
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from channels.security.websocket import WebsocketDenier  # noqa: E402
from django.conf import settings  # noqa: E402
from django.urls import re_path  # noqa: E402

from pqadmin.live.routing import websocket_urlpatterns  # noqa: E402
from pqadmin.server import assets  # noqa: E402
from pqadmin.server.handler import SyncHandler  # noqa: E402
from pqadmin.server.origin import SameOrigin  # noqa: E402
from pqadmin.server.pool import ThreadPool  # noqa: E402
from pqadmin.server.proxy import TrustedProxy  # noqa: E402
from pqadmin.wall.routing import websocket_urlpatterns as wall_urlpatterns  # noqa: E402

pages = ThreadPool(SyncHandler(), threads=settings.PQADMIN_THREADS)
routes = [*websocket_urlpatterns, *wall_urlpatterns, re_path("", WebsocketDenier.as_asgi())]
sockets = SameOrigin(AuthMiddlewareStack(URLRouter(routes)))
application = TrustedProxy(
    ProtocolTypeRouter({"http": assets.serve(pages), "websocket": sockets}),
    trusted=settings.PQADMIN_TRUSTED_PROXY,
)
