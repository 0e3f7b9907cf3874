"""Where a wall's socket is: below the wall's own address, where its cookie is sent."""

from django.urls import path

from pqadmin.wall.consumer import WallConsumer

websocket_urlpatterns = [path("wall/<slug:slug>/live/", WallConsumer.as_asgi(), name="wall-live")]
