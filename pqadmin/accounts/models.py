"""Tables about users besides Django's own: failed logins, grants, tokens, preferences, answers of requests."""

from django.contrib.auth.models import User
from django.db import models

from pqadmin.accounts.rights import GRANTABLE


class LoginAttempt(models.Model):
    """One login that has not succeeded (yet), counted under one throttle key."""

    key = models.CharField(max_length=64)
    at = models.DateTimeField()

    class Meta:
        indexes = [
            models.Index(fields=["key", "at"], name="attempt_key_at"),
            models.Index(fields=["at"], name="attempt_at"),
        ]

    def __str__(self) -> str:
        return f"{self.key[:12]} {self.at:%Y-%m-%d %H:%M:%S}"


class Grant(models.Model):
    """A user's role on the queues that match a glob by name."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="grants")
    glob = models.CharField(max_length=300)
    role = models.CharField(max_length=16, choices=[(role.value, role.label) for role in GRANTABLE])
    #: The name of the giver, as text: users are renamed and deleted.
    given_by = models.CharField(max_length=150)
    given_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "glob"], name="one_grant_per_glob")]

    def __str__(self) -> str:
        return f"{self.user_id}: {self.role} on {self.glob}"


class Token(models.Model):
    """A program's credential: a random secret, known by its hash, with a part of its owner's rights."""

    #: SHA-256 of the secret, in hex. The secret has 256 random bits, so no slow hash is needed.
    digest = models.CharField(max_length=64, unique=True)
    name = models.CharField(max_length=100)
    owner = models.ForeignKey(User, on_delete=models.CASCADE, related_name="tokens")
    #: Names of `pqadmin.accounts.caller.Verb`.
    verbs = models.JSONField()
    #: The globs of the queues that it may use.
    queues = models.JSONField()
    #: Requests a second; None is no limit of its own.
    rate = models.PositiveIntegerField(null=True)
    created_at = models.DateTimeField()
    #: None: it does not expire.
    expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    #: Written at most once a minute.
    last_used_at = models.DateTimeField(null=True)
    last_address = models.CharField(max_length=45, blank=True)

    class Meta:
        # A name stands for one token in the audit; it is free again when that is revoked.
        constraints = [
            models.UniqueConstraint(
                fields=["name"], condition=models.Q(revoked_at__isnull=True), name="one_valid_token_per_name"
            )
        ]

    def __str__(self) -> str:
        return self.name


class Preference(models.Model):
    """The choices of one user, for every browser."""

    user = models.OneToOneField(User, on_delete=models.CASCADE, related_name="preference")
    #: The ids of favorite queues, in their order.
    favorites = models.JSONField(default=list)
    #: The groups of the overview that are shut, by label.
    folded = models.JSONField(default=list)

    def __str__(self) -> str:
        return str(self.user_id)


class KeptAnswer(models.Model):
    """The answer of a request with an idempotency key that changed these tables, in the transaction of the change."""

    #: SHA-256 of the key and of what the request asks for, in hex.
    key = models.CharField(max_length=64, primary_key=True)
    content = models.CharField(max_length=64)
    value = models.BinaryField()
    at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"{self.key[:12]} {self.at:%Y-%m-%d %H:%M:%S}"
