"""Every setting of the site: its name, its default, what it means and how its value is checked.

A setting that is not declared here does not exist: `pqadmin.settings` reads the environment only through
`read`, and a test compares `SETTINGS` with docs/reference/settings.md.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import dj_database_url

Network: TypeAlias = IPv4Network | IPv6Network
T = TypeVar("T")


class BadSetting(Exception):
    """A setting's value cannot be used; the message names the setting and says what it takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One environment variable that the site reads."""

    name: str
    default: str
    meaning: str


STORE = Setting(
    name="PQADMIN_STORE",
    default="lmdb:$PQADMIN_DATA/store",
    meaning="Where the queues are: a store URL such as `lmdb:PATH`.",
)
DATA = Setting(
    name="PQADMIN_DATA",
    default="var/",
    meaning="The folder for everything the site keeps: the secret key, its tables, prepared static files.",
)
STORE_MAX_BYTES = Setting(  # read by the embedded engine itself, so that the library heeds it too
    name="PQ_STORE_MAX_BYTES",
    default="68719476736",
    meaning="Bytes that pushes may fill in an embedded store; pops and deletes always have room.",
)
HOST = Setting(name="PQADMIN_HOST", default="127.0.0.1", meaning="The address to listen on.")
PORT = Setting(name="PQADMIN_PORT", default="8000", meaning="The TCP port to listen on; 0 picks a free one.")
ALLOWED_HOSTS = Setting(
    name="PQADMIN_ALLOWED_HOSTS",
    default="",
    meaning="Host names under which the site may be visited, by commas, besides localhost and PQADMIN_HOST.",
)
TRUSTED_PROXY = Setting(
    name="PQADMIN_TRUSTED_PROXY",
    default="",
    meaning="Addresses or networks, by commas, of proxies whose X-Forwarded-For and -Proto are believed.",
)
MAX_BODY = Setting(
    name="PQADMIN_MAX_BODY",
    default="1000000",
    meaning="Bytes of the body of a request; a larger one is refused (413).",
)
MAX_UPLOAD = Setting(
    name="PQADMIN_MAX_UPLOAD",
    default="25000000",
    meaning="Bytes of the body of a request to a page that takes files.",
)
MAX_CONNECTIONS = Setting(
    name="PQADMIN_MAX_CONNECTIONS",
    default="0",
    meaning="Connections open at once; 0: as many as the process may have files open, less a reserve.",
)
CONNECTIONS_PER_ADDRESS = Setting(
    name="PQADMIN_CONNECTIONS_PER_ADDRESS",
    default="500",
    meaning="Connections of one address open at once, trusted proxies aside; 0: no limit.",
)
REQUESTS_PER_ADDRESS = Setting(
    name="PQADMIN_REQUESTS_PER_ADDRESS",
    default="100",
    meaning="Requests of one address under way at once; 0: no limit.",
)
REQUESTS_PER_PERSON = Setting(
    name="PQADMIN_REQUESTS_PER_PERSON",
    default="30",
    meaning="Requests of one session under way at once; 0: no limit.",
)
SOCKETS_PER_PERSON = Setting(
    name="PQADMIN_SOCKETS_PER_PERSON",
    default="50",
    meaning="Live pages of one person, or screens of one wall link, open at once; 0: no limit.",
)
VIEW_THREADS = Setting(
    name="PQADMIN_VIEW_THREADS",
    default="4",
    meaning="Threads that answer requests, 1 to 64.",
)
MIN_FREE_BYTES = Setting(
    name="PQADMIN_MIN_FREE_BYTES",
    default="104857600",
    meaning="Bytes free on the disks of data folder and store, below which /readyz answers 503; 0: not checked.",
)
ENVIRONMENT = Setting(
    name="PQADMIN_ENVIRONMENT",
    default="",
    meaning="The badge on every page, such as `production` or `staging`; empty shows none.",
)
ARM_MINUTES = Setting(
    name="PQADMIN_ARM_MINUTES",
    default="0",
    meaning="Minutes for which a person arms a read-only site for writes; 0: writes need no arming.",
)
DATABASE_URL = Setting(
    name="DATABASE_URL",
    default="",
    meaning="Django's tables (people, sessions), as a database URL; empty is SQLite in the data folder.",
)

REDACT = Setting(
    name="PQADMIN_REDACT",
    default=(
        "password,passwd,passphrase,secret,client_secret,api_key,private_key,token,access_token,refresh_token,"
        "id_token,auth_token,session_token,authorization,proxy_authorization,cookie,set_cookie"
    ),
    meaning="Keys whose values pages hide in every queue: names or globs, by commas; `none` hides nothing.",
)

STALLED_SECONDS = Setting(
    name="PQADMIN_STALLED_SECONDS",
    default="60",
    meaning="Seconds without a take after which a queue with ready items needs a look; 0: never.",
)
GROWING_SECONDS = Setting(
    name="PQADMIN_GROWING_SECONDS",
    default="300",
    meaning="Seconds of steady growth after which a queue needs a look; 0: never.",
)
OLDEST_SECONDS = Setting(
    name="PQADMIN_OLDEST_SECONDS",
    default="900",
    meaning="Seconds that the oldest claimable item may wait before the queue needs a look; 0: for ever.",
)
DEAD_ITEMS = Setting(
    name="PQADMIN_DEAD_ITEMS",
    default="1",
    meaning="Dead items from which on a queue needs a look; 0: never.",
)
AUDIT_DAYS = Setting(
    name="PQADMIN_AUDIT_DAYS",
    default="400",
    meaning="Days for which the audit keeps acts; older ones are forgotten. 0: for ever.",
)

SETTINGS = (
    STORE,
    STORE_MAX_BYTES,
    DATA,
    HOST,
    PORT,
    ALLOWED_HOSTS,
    TRUSTED_PROXY,
    MAX_BODY,
    MAX_UPLOAD,
    MAX_CONNECTIONS,
    CONNECTIONS_PER_ADDRESS,
    REQUESTS_PER_ADDRESS,
    REQUESTS_PER_PERSON,
    SOCKETS_PER_PERSON,
    VIEW_THREADS,
    MIN_FREE_BYTES,
    ENVIRONMENT,
    ARM_MINUTES,
    DATABASE_URL,
    REDACT,
    STALLED_SECONDS,
    GROWING_SECONDS,
    OLDEST_SECONDS,
    DEAD_ITEMS,
    AUDIT_DAYS,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The checked values of all settings."""

    store: str
    data: Path
    host: str
    port: int
    allowed_hosts: tuple[str, ...]
    trusted_proxy: tuple[Network, ...]
    max_body: int
    max_upload: int
    max_connections: int
    connections_per_address: int
    requests_per_address: int
    requests_per_person: int
    sockets_per_person: int
    view_threads: int
    min_free_bytes: int
    environment: str
    arm_minutes: int
    database: Mapping[str, Any]
    redact: tuple[str, ...]
    stalled_seconds: int
    growing_seconds: int
    oldest_seconds: int
    dead_items: int
    audit_days: int


def read(variables: Mapping[str, str]) -> Environment:
    """Check every setting in `variables` and return their values; raises BadSetting."""

    def value(setting: Setting, parse: Callable[[str], T]) -> T:
        return _value(variables, setting, parse)

    data = value(DATA, _data)
    host = value(HOST, _host)
    return Environment(
        store=read_store(variables),
        data=data,
        host=host,
        port=value(PORT, parse_port),
        allowed_hosts=value(ALLOWED_HOSTS, lambda text: _allowed_hosts(text, host)),
        trusted_proxy=value(TRUSTED_PROXY, _networks),
        max_body=value(MAX_BODY, _bytes),
        max_upload=value(MAX_UPLOAD, _bytes),
        max_connections=value(MAX_CONNECTIONS, _whole),
        connections_per_address=value(CONNECTIONS_PER_ADDRESS, _whole),
        requests_per_address=value(REQUESTS_PER_ADDRESS, _whole),
        requests_per_person=value(REQUESTS_PER_PERSON, _whole),
        sockets_per_person=value(SOCKETS_PER_PERSON, _whole),
        view_threads=value(VIEW_THREADS, _threads),
        min_free_bytes=value(MIN_FREE_BYTES, _bytes_or_none),
        environment=value(ENVIRONMENT, _environment),
        arm_minutes=value(ARM_MINUTES, _minutes),
        database=value(DATABASE_URL, lambda text: _database(text, data)),
        redact=value(REDACT, _redact),
        stalled_seconds=value(STALLED_SECONDS, _whole),
        growing_seconds=value(GROWING_SECONDS, _whole),
        oldest_seconds=value(OLDEST_SECONDS, _whole),
        dead_items=value(DEAD_ITEMS, _whole),
        audit_days=value(AUDIT_DAYS, _days),
    )


def read_store(variables: Mapping[str, str]) -> str:
    """Check only what says where the store is, and return its URL; raises BadSetting."""
    data = _value(variables, DATA, _data)
    _value(variables, STORE_MAX_BYTES, _bytes)
    return _value(variables, STORE, lambda text: _store(text, data))


def _value(variables: Mapping[str, str], setting: Setting, parse: Callable[[str], T]) -> T:
    text = variables.get(setting.name, "").strip() or setting.default
    try:
        return parse(text)
    except ValueError as error:
        shown = "" if setting is DATABASE_URL else f"={text!r}"  # a database URL holds a password
        raise BadSetting(f"{setting.name}{shown}: {error}") from None


def parse_port(text: str) -> int:
    """Return the TCP port written in `text`, 0 to 65535; raises ValueError."""
    if not re.fullmatch(r"[0-9]{1,5}", text) or int(text) > 65535:
        raise ValueError("a port is a number from 0 to 65535")
    return int(text)


def _data(text: str) -> Path:
    if "\0" in text:
        raise ValueError("a path holds no NUL character")
    return Path(text).expanduser().absolute()


def _store(text: str, data: Path) -> str:
    url = text.replace("$PQADMIN_DATA", str(data)) if text == STORE.default else text
    if not re.match(r"[a-z]+:", url):
        raise ValueError("a store URL begins with its engine, such as lmdb:PATH")
    return url


def _bytes(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,18}", text) or not int(text):
        raise ValueError("a number of bytes")
    return int(text)


def _bytes_or_none(text: str) -> int:
    return 0 if text == "0" else _bytes(text)


def _threads(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,2}", text) or not 1 <= int(text) <= 64:
        raise ValueError("a number of threads, from 1 to 64")
    return int(text)


def _whole(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise ValueError("a whole number, 0 or more")
    return int(text)


def _minutes(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,4}", text) or int(text) > 1440:
        raise ValueError("minutes, from 0 to 1440")
    return int(text)


def _days(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,5}", text) or int(text) > 36_500:
        raise ValueError("days, from 0 to 36500")
    return int(text)


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
    own = [] if host in {"0.0.0.0", "::"} else [f"[{host}]" if ":" in host else host]  # noqa: S104
    return tuple(dict.fromkeys(["localhost", "127.0.0.1", "[::1]", *own, *names]))


def _networks(text: str) -> tuple[Network, ...]:
    return tuple(ip_network(part.strip()) for part in text.split(",") if part.strip())


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
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        },
    }
