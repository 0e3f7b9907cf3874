"""What every page says of jobs: how many are running."""

from __future__ import annotations

from django import template
from django.template import Context
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import ngettext

from pqadmin import jobs
from pqadmin.accounts.scope import scope_of
from pqadmin.display import format as write
from pqadmin.pages import visibility

register = template.Library()


@register.simple_tag(takes_context=True)
def running_jobs(context: Context) -> SafeString | str:
    """Write how many jobs are running that the person sees; nothing where none is.

    As this process last saw, or as the page has read: it shows the same jobs.
    """
    read, user = context.get("all_running"), context.get("user")
    running = jobs.running() if read is None else read
    if not running or user is None:
        return ""
    may = scope_of(user)
    n = sum(visibility.sees_job(may, job) for job in running)
    if not n:
        return ""
    words = ngettext("%(n)s running", "%(n)s running", n) % {"n": write.number(n)}
    return format_html(
        ' <span class="count" aria-hidden="true">{}</span><span class="visually-hidden"> {}</span>',
        write.number(n),
        words,
    )
