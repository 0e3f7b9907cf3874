"""Addresses of queues and items; remembered, because an overview needs hundreds of them."""

from __future__ import annotations

from functools import lru_cache

from django.urls import reverse


@lru_cache(maxsize=16_384)
def queue_url(name: str) -> str:
    """Return the address of a queue's page; acts on it lie below."""
    return reverse("dashboard:queue", args=[name])


def item_url(name: str, item_id: str) -> str:
    """Return the address of an item's page."""
    return f"{queue_url(name)}items/{item_id}/"
