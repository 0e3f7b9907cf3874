"""The dashboard app: pages for operators."""

from django.apps import AppConfig


class DashboardConfig(AppConfig):
    name = "pqadmin.dashboard"
    label = "dashboard"
    default_auto_field = "django.db.models.BigAutoField"
