"""Passwords that the site makes up."""

import secrets

ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"  # no letter that is easily taken for another
GROUPS_OF = 5
GROUPS = 4


def new_password() -> str:
    """Return a password of 100 random bits that can be read out over the telephone."""
    return "-".join("".join(secrets.choice(ALPHABET) for _ in range(GROUPS_OF)) for _ in range(GROUPS))
