"""Slows down password guessing: by account and address together, by address alone, and by account alone.

Attempts are rows in the site's database, so every process counts the same ones and a restart forgets none.
An attempt is written before the password is looked at: guesses sent all at once are counted too.
"""

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import IPv6Address, ip_address, ip_network

from pqadmin.accounts.models import LoginAttempt

WINDOW = timedelta(minutes=15)
PER_ACCOUNT_AND_ADDRESS = 5
PER_ADDRESS = 30
#: From all addresses together. High, as whoever knows a name can use it up and lock the person out for a while.
PER_ACCOUNT = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A login that may go on, or when to come back."""

    rows: tuple[int, ...]
    retry_after: timedelta | None

    @property
    def allowed(self) -> bool:
        """Say whether the password may be looked at."""
        return self.retry_after is None


def begin(*, account: str, address: str, now: datetime) -> Attempt:
    """Count one attempt, or say how long to wait when there were too many in the last 15 minutes."""
    sweep(now)
    keys = _keys(account, address)
    rows = LoginAttempt.objects.bulk_create([LoginAttempt(key=key, at=now) for key, _ in keys])
    waits = [wait for key, limit in keys if (wait := _wait(key, limit, now))]
    ids = tuple(row.pk for row in rows)
    if waits:
        LoginAttempt.objects.filter(pk__in=ids).delete()  # asking while blocked does not prolong the block
        return Attempt(rows=(), retry_after=max(waits))
    return Attempt(rows=ids, retry_after=None)


def succeed(attempt: Attempt, *, account: str, address: str) -> None:
    """Forget the attempt, and the failures of this account from this address before it."""
    (pair, _), *_others = _keys(account, address)
    LoginAttempt.objects.filter(pk__in=attempt.rows).delete()
    LoginAttempt.objects.filter(key=pair).delete()


def sweep(now: datetime) -> None:
    """Forget attempts that no longer count."""
    LoginAttempt.objects.filter(at__lte=now - WINDOW).delete()


def _wait(key: str, limit: int, now: datetime) -> timedelta | None:
    times = LoginAttempt.objects.filter(key=key).order_by("-at").values_list("at", flat=True)
    within = list(times[: limit + 1])
    return WINDOW - (now - within[limit]) if len(within) > limit else None


def _keys(account: str, address: str) -> tuple[tuple[str, int], ...]:
    network = _network(address)
    return (
        (_digest("account", account.casefold(), network), PER_ACCOUNT_AND_ADDRESS),
        (_digest("address", network), PER_ADDRESS),
        (_digest("name", account.casefold()), PER_ACCOUNT),
    )


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _network(address: str) -> str:
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, IPv6Address):  # one subscriber has at least a /64 to choose from
        return str(ip_network((parsed, 64), strict=False))
    return str(parsed)
