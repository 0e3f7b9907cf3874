"""What `check` says of settings that are each good, and wrong together."""

from ipaddress import ip_address
from typing import Any

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Tags, register

_OWN = {"localhost", "127.0.0.1", "[::1]"}


@register(Tags.security)
def undeclared_proxy(app_configs: Any, **more: Any) -> list[CheckMessage]:
    """Warn of a site behind an undeclared proxy: it listens locally and has foreign host names."""
    names = [name for name in settings.ALLOWED_HOSTS if name not in {*_OWN, settings.PQADMIN_HOST}]
    if settings.PQADMIN_TRUSTED_PROXY or not names or not _is_loopback(settings.PQADMIN_HOST):
        return []
    return [
        checks.Warning(
            f"The site listens on {settings.PQADMIN_HOST} only and is visited as {names[0]}, so through a proxy, and "
            "PQADMIN_TRUSTED_PROXY declares none.",
            hint="Set PQADMIN_TRUSTED_PROXY to the proxy's address: without it cookies are not Secure, and all "
            "visitors share one address and its limits.",
            id="pqadmin.W001",
        )
    ]


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
