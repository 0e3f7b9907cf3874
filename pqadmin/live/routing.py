"""Where the live socket is."""

from django.urls import path

from pqadmin.live.consumer import LiveConsumer

websocket_urlpatterns = [path("live/", LiveConsumer.as_asgi(), name="live")]
