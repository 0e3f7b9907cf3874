"""The app of the pages about people."""

from django.apps import AppConfig


class PeopleConfig(AppConfig):
    name = "pqadmin.people"
    label = "people"
