"""The app of the commands."""

from django.apps import AppConfig


class CommandsConfig(AppConfig):
    name = "pqadmin.commands"
    label = "commands"
