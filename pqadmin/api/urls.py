"""The API's addresses; its handler resolves them, not that of the pages."""

from django.urls import path

from pqadmin.api.application import api

urlpatterns = [path("api/v1/", api.urls)]
