"""The operations app."""

from django.apps import AppConfig


class OperationsConfig(AppConfig):
    name = "pqadmin.commands"
    label = "operations"
