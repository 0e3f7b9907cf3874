"""Puts the superusers' admin site in the place of Django's own."""

from django.contrib.admin.apps import AdminConfig


class SuperuserAdminConfig(AdminConfig):
    default = False
    default_site = "pqadmin.accounts.admin_site.SuperuserAdminSite"
