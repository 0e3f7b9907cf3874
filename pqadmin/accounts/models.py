"""Failed logins, kept for as long as they slow the next one down."""

from django.db import models


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
