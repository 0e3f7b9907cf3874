"""What another process does to the tables of a site."""

from django.contrib.auth.models import User
from django.core.management import call_command
from django.utils import timezone

from pqadmin.accounts.authentication import digest
from pqadmin.accounts.caller import Verb
from pqadmin.accounts.models import Token
from pqadmin.accounts.rights import Role
from pqadmin.accounts.roles import grant

__all__ = ["create", "restrict", "revoke"]


def create(secret: str) -> None:
    """Create the tables, a viewer, and a token of the secret."""
    call_command("migrate", verbosity=0)
    owner = User.objects.create_user("ann")
    grant(owner, Role.VIEWER)
    now = timezone.now()
    Token.objects.create(name="ci", owner=owner, digest=digest(secret), verbs=list(Verb), queues=["*"], created_at=now)


def restrict(glob: str) -> None:
    """Leave the owner only what a glob matches."""
    owner = User.objects.get()
    grant(owner, Role.NONE)
    owner.grants.create(glob=glob, role=Role.VIEWER, given_by="", given_at=timezone.now())


def revoke() -> None:
    """Revoke the token."""
    Token.objects.update(revoked_at=timezone.now())
