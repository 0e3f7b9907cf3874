"""Limits of password guessing: by account and address at the login, by user at the password change.

Attempts are rows in the site's database, so every process counts the same ones and a restart forgets none.
An attempt is written before the password is checked, so that concurrent guesses are counted too.
"""

import hashlib
import unicodedata
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q

from pqadmin.accounts.models import LoginAttempt
from pqadmin.conf import ip

WINDOW = timedelta(minutes=15)
PER_ACCOUNT_AND_ADDRESS = 5
PER_ADDRESS = 30
#: From all addresses together. High, because anyone with a user's name can use it up and lock the user out.
PER_ACCOUNT = 60
#: Wrong old passwords of one signed-in person, from everywhere: a session that was stolen comes from any address.
PER_PERSON = 5
#: Short codes of walls, from all addresses. Very high, because all screens wait once it is used up: of the 2⁴⁰ codes
#: this many tries are a 50-millionth.
ALL_CODES = 20_000
#: Of `django.contrib.auth`'s users.
LONGEST_NAME = 150


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """An attempt that is allowed, or the time to wait."""

    rows: tuple[int, ...]
    #: The key of the failures that a success forgets.
    key: str
    retry_after: timedelta | None

    @property
    def allowed(self) -> bool:
        """Return whether the password may be checked."""
        return self.retry_after is None


def begin(*, account: str, address: str, now: datetime) -> Attempt:
    """Count one login, or return the time to wait after too many in 15 minutes."""
    name, network = _authenticated_as(account), ip.client(address)
    return _begin(
        (
            (_digest("account", name, network), PER_ACCOUNT_AND_ADDRESS),
            (_digest("address", network), PER_ADDRESS),
            (_digest("name", name), PER_ACCOUNT),
        ),
        now,
    )


def begin_change(*, person: str, now: datetime) -> Attempt:
    """Count one old password that a signed-in person types, or say how long to wait."""
    return _begin(((_digest("person", person), PER_PERSON),), now)


def begin_code(*, address: str, now: datetime) -> Attempt:
    """Count one short code of a wall that is typed, or say how long to wait."""
    network = ip.client(address)
    return _begin(((_digest("code", network), PER_ADDRESS), (_digest("code"), ALL_CODES)), now)


def succeed(attempt: Attempt) -> None:
    """Forget the attempt, and the failures before it: of this account from this address, or of this person."""
    LoginAttempt.objects.filter(pk__in=attempt.rows).delete()
    LoginAttempt.objects.filter(key=attempt.key).delete()


def sweep(now: datetime) -> None:
    """Forget attempts that no longer count. They are old, or of a clock that was set back since."""
    LoginAttempt.objects.filter(Q(at__lte=now - WINDOW) | Q(at__gt=now + WINDOW)).delete()


def _begin(keys: tuple[tuple[str, int], ...], now: datetime) -> Attempt:
    sweep(now)
    rows = LoginAttempt.objects.bulk_create([LoginAttempt(key=key, at=now) for key, _ in keys])
    waits = [wait for key, limit in keys if (wait := _wait(key, limit, now))]
    ids, first = tuple(row.pk for row in rows), keys[0][0]
    if waits:
        LoginAttempt.objects.filter(pk__in=ids).delete()  # asking while blocked does not prolong the block
        return Attempt(rows=(), key=first, retry_after=max(waits))
    return Attempt(rows=ids, key=first, retry_after=None)


def _wait(key: str, limit: int, now: datetime) -> timedelta | None:
    times = LoginAttempt.objects.filter(key=key).order_by("-at").values_list("at", flat=True)
    beyond = times[limit : limit + 1].first()
    return None if beyond is None else WINDOW - (now - beyond)


def _authenticated_as(account: str) -> str:
    """Return one text for all spellings that the login form takes for the same account.

    The form strips the name and normalizes it (NFKC); the case is folded besides, as in names that look the
    same. A name longer than any account's is not normalized, neither by the form nor here.
    """
    name = account.strip()
    if len(name) > LONGEST_NAME:
        return name
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
