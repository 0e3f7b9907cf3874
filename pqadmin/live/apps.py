"""The live app."""

from django.apps import AppConfig


class LiveConfig(AppConfig):
    name = "pqadmin.live"
    label = "live"
