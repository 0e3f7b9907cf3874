"""The accounts app: people, their roles, login and passwords."""

from django.apps import AppConfig
from django.contrib.admin import apps as admin_apps
from django.utils.translation import gettext_lazy as _


class AccountsConfig(AppConfig):
    name = "pqadmin.accounts"
    verbose_name = _("Accounts")

    def ready(self) -> None:
        """Refuse new people with names that cannot be seen, wherever they are made."""
        from pqadmin.accounts.names import refuse_invisible

        refuse_invisible()


class SuperuserAdminConfig(admin_apps.AdminConfig):
    default = False  # of this module's two, `pqadmin.accounts` names the other
    default_site = "pqadmin.accounts.admin_site.SuperuserAdminSite"
