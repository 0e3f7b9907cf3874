"""What Django's admin shows: people, and the groups that are their roles."""

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin
from django.contrib.auth.models import Group
from django.http import HttpRequest

from pqadmin.accounts.roles import GROUPS

admin.site.unregister(Group)


@admin.register(Group)
class RoleGroupAdmin(GroupAdmin):
    """Groups; the three that are roles keep their names."""

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse to delete a role's group."""
        return super().has_delete_permission(request, obj) and (obj is None or obj.name not in GROUPS)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse to rename a role's group."""
        return super().has_change_permission(request, obj) and (obj is None or obj.name not in GROUPS)
