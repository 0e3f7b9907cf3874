"""What every page says of jobs: how many are running."""

from __future__ import annotations

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import ngettext

from pqadmin.dashboard import format as write
from pqadmin.server import jobs

register = template.Library()


@register.simple_tag
def running_jobs() -> SafeString | str:
    """Write how many jobs are running, as this process last saw; nothing where none is, or nobody knows."""
    n = jobs.running()
    if not n:
        return ""
    words = ngettext("%(n)s running", "%(n)s running", n) % {"n": write.number(n)}
    return format_html(
        ' <span class="count" aria-hidden="true">{}</span><span class="visually-hidden"> {}</span>',
        write.number(n),
        words,
    )
