"""The pages app: template tags that all pages use."""

from django.apps import AppConfig


class PagesConfig(AppConfig):
    name = "pqadmin.pages"
    label = "pages"
