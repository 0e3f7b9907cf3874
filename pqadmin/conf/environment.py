"""Every setting of the site: its name, default and check.

A setting that is not declared here does not exist: `pqadmin.settings` reads the environment only through
`read`, and a test compares `SETTINGS` with docs/reference/settings.md.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any, TypeAlias

import dj_database_url

from pqadmin.conf import ip

Network: TypeAlias = IPv4Network | IPv6Network


class BadSetting(Exception):
    """A setting has an unusable value; the message names the setting and what it takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One environment variable that the site reads."""

    name: str
    default: str
    #: Reads the text, with the value of the field `needs` where that is named; raises ValueError.
    parse: Callable[..., Any]
    needs: str


def _setting(name: str, default: str, parse: Callable[..., Any], needs: str = "") -> Mapping[str, Setting]:
    return {"setting": Setting(name=name, default=default, parse=parse, needs=needs)}


def _number(least: int, most: int, what: str) -> Callable[[str], int]:
    """Return a reader of whole numbers within limits; `what` is its error."""

    def parse(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,18}", text) or not least <= int(text) <= most:
            raise ValueError(what)
        return int(text)

    return parse


#: Reads a TCP port; raises ValueError.
parse_port = _number(0, 65_535, "a port is a number from 0 to 65535")
_bytes = _number(1, 10**18, "a number of bytes")
_whole = _number(0, 10**9, "a whole number, 0 or more")


def _data(text: str) -> Path:
    if "\0" in text:
        raise ValueError("a path holds no NUL character")
    return Path(text).expanduser().absolute()


def _store(text: str, data: Path) -> str:
    url = text.replace("$PQADMIN_DATA", str(data)) if text == _DEFAULT_STORE else text
    if not re.match(r"[a-z]+:", url):
        raise ValueError("a store URL begins with its engine, such as lmdb:PATH")
    return url


def _token(text: str) -> str:
    if not re.fullmatch(r"[!-~]*", text):
        raise ValueError("a token is one word of printable ASCII")
    return text


def _host(text: str) -> str:
    if re.search(r"[\s/]|^\[|:[0-9]+$", text) and "::" not in text:
        raise ValueError("an address or host name without a port, such as 127.0.0.1 or ::1")
    return text


def _allowed_hosts(text: str, host: str) -> tuple[str, ...]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name == "*":
            raise ValueError("'*' would allow every name; list the names, or '.example.org' for its subdomains")
        if not re.fullmatch(r"\.?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\.?|\[[0-9A-Fa-f:.]+\]", name):
            raise ValueError(f"{name!r} is not a host name; write no scheme, port or path")
    own = [] if host in ip.ALL else [f"[{host}]" if ":" in host else host]
    return tuple(dict.fromkeys(["localhost", "127.0.0.1", "[::1]", *own, *names]))


def _networks(text: str) -> tuple[Network, ...]:
    return tuple(ip_network(part.strip()) for part in text.split(",") if part.strip())


def _origins(text: str) -> tuple[str, ...]:
    origins = tuple(part.strip().rstrip("/").lower() for part in text.split(",") if part.strip())
    for origin in origins:
        if not re.fullmatch(r"https?://([a-z0-9.-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?", origin):
            raise ValueError(f"{origin!r} is no origin; write scheme and host, such as https://shop.example.org")
    return origins


def _environment(text: str) -> str:
    if len(text) > 40 or not text.isprintable():
        raise ValueError("a badge is at most 40 printable characters")
    return text


def _redact(text: str) -> tuple[str, ...]:
    if text.casefold() == "none":
        return ()
    rules = tuple(dict.fromkeys(rule for part in text.split(",") if (rule := part.strip())))
    for rule in rules:
        if len(rule) > 64 or not rule.isprintable():
            raise ValueError("names of keys or globs, each of at most 64 printable characters")
    return rules


def _database(text: str, data: Path) -> Mapping[str, Any]:
    if not text:
        return _sqlite(str(data / "site.sqlite3"))
    try:
        parsed = dict(dj_database_url.parse(text, conn_max_age=60, conn_health_checks=True))
    except (dj_database_url.ParseError, dj_database_url.UnknownSchemeError):
        raise ValueError("not a database URL, such as postgres://USER:PASSWORD@HOST/NAME") from None
    if parsed["ENGINE"] == "django.db.backends.sqlite3":
        return _sqlite(str(parsed["NAME"]))
    return parsed


def _sqlite(name: str) -> Mapping[str, Any]:
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": name,
        "CONN_MAX_AGE": None,
        "OPTIONS": {
            "timeout": 2,
            "transaction_mode": "IMMEDIATE",
            # FULL flushes each commit: after a power cut no token that was revoked is valid again. A login has five
            # commits, of 4 ms on an SSD; a request of the API has none but the use of its token, once a minute.
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;",
        },
    }


_DEFAULT_STORE = "lmdb:$PQADMIN_DATA/store"
_HIDDEN_KEYS = (
    "password,passwd,passphrase,secret,client_secret,api_key,private_key,token,access_token,refresh_token,"
    "id_token,auth_token,session_token,authorization,proxy_authorization,cookie,set_cookie"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """All settings and their checked values."""

    #: Where the queues are: a store URL such as `lmdb:PATH`.
    store: str = field(metadata=_setting("PQADMIN_STORE", _DEFAULT_STORE, _store, "data"))
    #: The token for a store of another site (https://HOST).
    token: str = field(metadata=_setting("PQADMIN_TOKEN", "", _token))
    #: Read by the embedded engine itself, so that the library heeds it too.
    #: Bytes that pushes may fill in an embedded store; pops and deletes always have room.
    store_max_bytes: int = field(metadata=_setting("PQ_STORE_MAX_BYTES", "68719476736", _bytes))
    #: The folder for everything the site keeps: the secret key, its tables, prepared static files.
    data: Path = field(metadata=_setting("PQADMIN_DATA", "var/", _data))
    #: The address to listen on.
    host: str = field(metadata=_setting("PQADMIN_HOST", "127.0.0.1", _host))
    #: The TCP port to listen on; 0 picks a free one.
    port: int = field(metadata=_setting("PQADMIN_PORT", "8000", parse_port))
    #: Host names under which the site may be visited, by commas, besides localhost and PQADMIN_HOST.
    allowed_hosts: tuple[str, ...] = field(metadata=_setting("PQADMIN_ALLOWED_HOSTS", "", _allowed_hosts, "host"))
    #: Addresses or networks, by commas, of proxies with an X-Forwarded-For and -Proto that are believed.
    trusted_proxy: tuple[Network, ...] = field(metadata=_setting("PQADMIN_TRUSTED_PROXY", "", _networks))
    #: Bytes of the body of a request; a larger one is refused (413).
    max_body: int = field(metadata=_setting("PQADMIN_MAX_BODY", "1000000", _bytes))
    #: Bytes of the body of a request to a page that takes files.
    max_upload: int = field(metadata=_setting("PQADMIN_MAX_UPLOAD", "25000000", _bytes))
    #: Connections open at once; 0: as many as the process may have files open, less a reserve.
    max_connections: int = field(metadata=_setting("PQADMIN_MAX_CONNECTIONS", "0", _whole))
    #: Connections of one address open at once, trusted proxies aside; 0: no limit.
    connections_per_address: int = field(metadata=_setting("PQADMIN_CONNECTIONS_PER_ADDRESS", "500", _whole))
    #: Requests of one address under way at once; 0: no limit.
    requests_per_address: int = field(metadata=_setting("PQADMIN_REQUESTS_PER_ADDRESS", "100", _whole))
    #: Requests of one session under way at once; 0: no limit.
    requests_per_person: int = field(metadata=_setting("PQADMIN_REQUESTS_PER_PERSON", "30", _whole))
    #: Live pages of one person, or screens of one wall link, open at once; 0: no limit.
    sockets_per_person: int = field(metadata=_setting("PQADMIN_SOCKETS_PER_PERSON", "50", _whole))
    #: Long polls and event streams of one token under way at once; 0: no limit.
    waits_per_token: int = field(metadata=_setting("PQADMIN_WAITS_PER_TOKEN", "100", _whole))
    #: The same of one person, with all tokens and sessions.
    waits_per_person: int = field(metadata=_setting("PQADMIN_WAITS_PER_PERSON", "300", _whole))
    #: Origins, by commas, whose pages may call the API with a token; empty: none but the site's own.
    cors_origins: tuple[str, ...] = field(metadata=_setting("PQADMIN_CORS_ORIGINS", "", _origins))
    #: Threads that answer requests, 1 to 64.
    view_threads: int = field(
        metadata=_setting("PQADMIN_VIEW_THREADS", "4", _number(1, 64, "a number of threads, from 1 to 64"))
    )
    #: Bytes free on the disks of data folder and store, below which /readyz answers 503; 0: not checked.
    min_free_bytes: int = field(
        metadata=_setting("PQADMIN_MIN_FREE_BYTES", "104857600", _number(0, 10**18, "a number of bytes"))
    )
    #: The badge on every page, such as `production` or `staging`; empty shows none.
    environment: str = field(metadata=_setting("PQADMIN_ENVIRONMENT", "", _environment))
    #: Minutes for which a person arms a read-only site for writes; 0: writes need no arming.
    arm_minutes: int = field(metadata=_setting("PQADMIN_ARM_MINUTES", "0", _number(0, 1440, "minutes, from 0 to 1440")))
    #: Django's tables (people, sessions), as a database URL; empty is SQLite in the data folder.
    database: Mapping[str, Any] = field(metadata=_setting("DATABASE_URL", "", _database, "data"))
    #: Keys whose values pages hide in every queue: names or globs, by commas; `none` hides nothing.
    redact: tuple[str, ...] = field(metadata=_setting("PQADMIN_REDACT", _HIDDEN_KEYS, _redact))
    #: Seconds without a take after which a queue with ready items needs attention; 0: never.
    stalled_seconds: int = field(metadata=_setting("PQADMIN_STALLED_SECONDS", "60", _whole))
    #: Seconds of steady growth after which a queue needs attention; 0: never.
    growing_seconds: int = field(metadata=_setting("PQADMIN_GROWING_SECONDS", "120", _whole))
    #: Seconds that the oldest claimable item may wait before the queue needs attention; 0: for ever.
    oldest_seconds: int = field(metadata=_setting("PQADMIN_OLDEST_SECONDS", "900", _whole))
    #: Dead items from which on a queue needs attention; 0: never.
    dead_items: int = field(metadata=_setting("PQADMIN_DEAD_ITEMS", "1", _whole))
    #: Days for which the audit keeps its records; older ones are removed. 0: for ever.
    audit_days: int = field(metadata=_setting("PQADMIN_AUDIT_DAYS", "400", _number(0, 36_500, "days, from 0 to 36500")))


#: Settings that hold a password.
_SECRET = ("DATABASE_URL", "PQADMIN_TOKEN")
_OF_FIELDS: dict[str, Setting] = {each.name: each.metadata["setting"] for each in fields(Environment)}
SETTINGS = tuple(_OF_FIELDS.values())


def read(variables: Mapping[str, str]) -> Environment:
    """Check every setting in `variables` and return their values; raises BadSetting."""
    return Environment(**{name: _value(variables, name) for name in _OF_FIELDS})


def read_store(variables: Mapping[str, str]) -> str:
    """Check only the settings of the store, and return its URL; raises BadSetting."""
    _value(variables, "store_max_bytes")
    return str(_value(variables, "store"))


def read_token(variables: Mapping[str, str]) -> str:
    """Check only the setting of the token, and return it; raises BadSetting."""
    return str(_value(variables, "token"))


def _value(variables: Mapping[str, str], name: str) -> Any:
    setting = _OF_FIELDS[name]
    text = variables.get(setting.name, "").strip() or setting.default
    needed = [_value(variables, setting.needs)] if setting.needs else []
    try:
        return setting.parse(text, *needed)
    except ValueError as error:
        shown = "" if setting.name in _SECRET else f"={text!r}"
        raise BadSetting(f"{setting.name}{shown}: {error}") from None
