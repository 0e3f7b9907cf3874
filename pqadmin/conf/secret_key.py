"""The secret key that signs sessions and forms: one file in the data folder, readable by its owner only."""

import os
import secrets
from pathlib import Path

FILE = "secret_key"


def read(data: Path) -> str:
    """Return the kept key. Before the first start, a key that lasts as long as this process."""
    try:
        return (data / FILE).read_text(encoding="ascii").strip() or secrets.token_urlsafe(48)
    except OSError:
        return secrets.token_urlsafe(48)


def ensure(data: Path) -> str:
    """Return the kept key, minting it first where there is none; raises OSError."""
    path = data / FILE
    draft = data / f".{FILE}.{secrets.token_hex(8)}"
    if not path.exists():
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(48) + "\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)  # never replaces a key that another process minted meanwhile
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return path.read_text(encoding="ascii").strip()
