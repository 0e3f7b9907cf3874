"""Saved tokens for stores of other sites: of a file, or kept by `pqadmin login`, readable by their owner alone."""

import json
import os
import stat
from pathlib import Path

from django.core.management.base import CommandError


def is_server(url: str) -> bool:
    """Return whether a store URL is the address of a site."""
    return url.startswith(("https://", "http://"))


def kept_file() -> Path:
    """Return the file with the tokens that were kept."""
    try:
        return Path("~/.config/pqadmin/tokens.json").expanduser()
    except RuntimeError:
        raise CommandError("No home folder is known, where tokens are kept: set HOME, or give --token-file.") from None


def read_token(path: Path) -> str:
    """Return the token in a file; raise `CommandError` for a file that other users may read."""
    try:
        return _private(path).strip()
    except UnicodeDecodeError:
        raise CommandError(f"{path} holds no token: it is not text.") from None


def token_for(url: str, *, own: str, token: str) -> str | None:
    """Return the token for a site: the environment's, unless its store is another site's, or the one that was kept."""
    return ("" if is_elsewhere(url, own) else token) or kept_token(url)


def is_elsewhere(url: str, own: str) -> bool:
    """Return whether the environment's store, and so its token, is of another site."""
    return is_server(own) and own.rstrip("/") != url.rstrip("/")


def kept_token(url: str) -> str | None:
    """Return the token that was kept for a site; None without one."""
    return _kept().get(url.rstrip("/"))


def keep(url: str, token: str) -> Path:
    """Keep the token for a site, and return the file."""
    return _write({**_kept(), url.rstrip("/"): token})


def forget(url: str) -> bool:
    """Forget the token for a site; return whether there was one."""
    kept = _kept()
    if kept.pop(url.rstrip("/"), None) is None:
        return False
    _write(kept)
    return True


def _kept() -> dict[str, str]:
    path = kept_file()
    if not path.exists():
        return {}
    try:
        found = json.loads(_private(path))
        return {str(url): str(token) for url, token in found.items()}
    except (ValueError, AttributeError):
        raise CommandError(f"{path} is damaged: remove it and log in again.") from None


def _write(kept: dict[str, str]) -> Path:
    path = kept_file()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = path.with_suffix(f".{os.getpid()}")
    new.touch(mode=0o600)
    new.write_text(json.dumps(kept, indent=1), encoding="utf-8")
    new.replace(path)
    return path


def _private(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & (stat.S_IRWXG | stat.S_IRWXO):
            raise CommandError(f"{path} may be read by other users: chmod 600 {path}")
        return file.read()
