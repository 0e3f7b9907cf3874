"""Verification of a store's file: all pages are read by a child process, which damage may kill."""

from __future__ import annotations

from queues.kv import verify_kv


def verify_store(url: str) -> None:
    """Read all pages of an embedded store, which may be in use; raise `StoreDamaged`. Other stores pass."""
    verify_kv(url)
