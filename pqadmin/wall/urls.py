"""Addresses of the wall: what screens show, and where boards are made."""

from django.urls import path, re_path

from pqadmin.wall import board_views, views

app_name = "wall"
urlpatterns = [
    re_path(r"^wall/?$", views.enter, name="enter"),
    re_path(r"^wall/(?P<slug>[-\w]+)/?$", views.wall, name="wall"),
    path("boards/", board_views.boards, name="boards"),
    path("boards/new/", board_views.MakeView.as_view(), name="make"),
    path("boards/preview/", board_views.preview, name="preview"),
    path("boards/<slug:slug>/", board_views.ChangeView.as_view(), name="change"),
    path("boards/<slug:slug>/remove/", board_views.RemoveView.as_view(), name="remove"),
    path("boards/<slug:slug>/links/", board_views.MintView.as_view(), name="mint"),
    path("boards/<slug:slug>/links/<int:key>/revoke/", board_views.RevokeView.as_view(), name="revoke"),
]
