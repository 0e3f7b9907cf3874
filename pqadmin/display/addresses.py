"""Addresses of queues and items, cached as an overview needs hundreds; and where a form leads."""

from functools import lru_cache
from urllib.parse import urlsplit

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme


@lru_cache(maxsize=16_384)
def queue_url(name: str) -> str:
    """Return the address of a queue's page; acts on it lie below."""
    return reverse("dashboard:queue", args=[name])


def item_url(name: str, item_id: str) -> str:
    """Return the address of an item's page."""
    return f"{queue_url(name)}items/{item_id}/"


def leave(url: str) -> HttpResponse:
    """Go from a sent form to the answer of its act. A reload there sends nothing again."""
    response = HttpResponseRedirect(url)
    response.status_code = 303
    return response


def next_of(request: HttpRequest) -> str:
    """Return the page of this site that a form, or the link to it, names as `next`; empty for any other."""
    page = request.POST.get("next") or request.GET.get("next", "")
    return page if page.startswith("/") and url_has_allowed_host_and_scheme(page, allowed_hosts=None) else ""


def referring_page(request: HttpRequest) -> str:
    """Return the page of this site that a request came from; empty where that is not known."""
    try:
        parts = urlsplit(request.headers.get("Referer", "")[:2_000])
    except ValueError:  # no address at all
        return ""
    page = f"{parts.path}?{parts.query}" if parts.query else parts.path
    return page if page.startswith("/") and url_has_allowed_host_and_scheme(page, allowed_hosts=None) else ""


def leave_for_next(request: HttpRequest) -> HttpResponse:
    """Go back to the page of this site that a sent form names as `next`; to the overview for any other."""
    return leave(next_of(request) or reverse("dashboard:overview"))
