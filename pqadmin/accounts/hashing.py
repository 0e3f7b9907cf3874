"""Password hashing with bounded memory: Argon2 takes its memory for each hash that is worked out at once."""

import threading

from django.contrib.auth.hashers import Argon2PasswordHasher

_one = threading.Lock()


class OneAtATime(Argon2PasswordHasher):
    """Django's Argon2, one hash at a time: a flood of guesses takes the memory of one, not of one for each thread.

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
