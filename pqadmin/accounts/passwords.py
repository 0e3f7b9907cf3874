"""Passwords: hashed with bounded memory, and made up for new people."""

import secrets
import threading

from django.contrib.auth.hashers import Argon2PasswordHasher

ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"  # no letter that is easily taken for another
GROUPS_OF = 5
GROUPS = 4

_one = threading.Lock()


class OneAtATime(Argon2PasswordHasher):
    """Django's Argon2, one hash at a time. A flood of guesses takes the memory of one hash.

    One hash takes 46 MiB and two passes on one thread, more than OWASP asks for with that much memory; Django takes
    100 MiB. Hashes that were made with other parameters are still read, and made anew at the next login.
    """

    time_cost = 2
    memory_cost = 47_104
    parallelism = 1

    def encode(self, password: str, salt: str) -> str:
        """Hash a password."""
        with _one:
            return super().encode(password, salt)

    def verify(self, password: str, encoded: str) -> bool:
        """Return whether a password is the one that was hashed."""
        with _one:
            return super().verify(password, encoded)


def new_password() -> str:
    """Return a password of 100 random bits that can be read out over the telephone."""
    return "-".join("".join(secrets.choice(ALPHABET) for _ in range(GROUPS_OF)) for _ in range(GROUPS))
