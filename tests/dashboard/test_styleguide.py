"""The styleguide shows every component: each partial template, and each class that the style sheets know."""

from __future__ import annotations

import re
from pathlib import Path

from django.contrib.auth.models import User
from django.test import Client

from pqadmin.accounts.roles import Role, grant
from queues import Store

PACKAGE = Path(__file__).resolve().parents[2] / "pqadmin"
#: Partials that are no component of their own: frames around others, and whole forms of one page, which are made of
#: components that the styleguide shows and are opened by the browser suite.
ELSEWHERE = {
    "_error.html",
    "accounts/_field.html",
    "dashboard/_act.html",
    "dashboard/_act_lease.html",
    "dashboard/_act_move.html",
    "dashboard/_act_page.html",
    "dashboard/_bulk.html",
    "dashboard/_bulk_act.html",
    "dashboard/_delete.html",
    "dashboard/_detach.html",
    "dashboard/_edit.html",
    "dashboard/_items.html",
    "dashboard/_keys_dialog.html",
    "dashboard/_pop.html",
    "dashboard/_purge.html",
    "dashboard/_purge_own.html",
    "dashboard/_queues.html",
    "dashboard/_sample_runs.html",
    "wall/_preview.html",
}
#: Classes of frames and forms that stand on one page only.
ELSEWHERE_CLASSES = """
    act act-value after aside big-word board-choice board-preview both-ends bulk bulk-acts by-enter chart charts
    consequence deeds edit everything faults figure filter-help glob-row grow-2 grows h2 h4 h5 h6 h8 inset
    job-figures job-head kept lease-instead list-and-push marks may measure minted more narrow narrow-start numbers open
    pad plot preview-wrong prose reckoning reveal scope screen secret settings then u-legend u-marker u-select u-value
    uplot wall-link wide-word
"""


def test_every_component_is_on_the_styleguide(client: Client, store: Store, db: None) -> None:
    somebody = User.objects.create_user("boss")
    grant(somebody, Role.ADMIN)
    client.force_login(somebody)
    answer = client.get("/styleguide/")
    assert answer.status_code == 200
    shown = {template.name for template in answer.templates}
    partials = {str(path).rpartition("templates/")[2] for path in PACKAGE.rglob("_*.html")}
    assert partials - shown == ELSEWHERE, "put a component on the styleguide; what is no component stands in ELSEWHERE"
    used = {word for words in re.findall(r'class="([^"]*)"', answer.content.decode()) for word in words.split()}
    assert _classes() - used == set(ELSEWHERE_CLASSES.split()), "shown now, or in no style sheet: leave it out"


def _classes() -> set[str]:
    """Return the classes that the style sheets name."""
    text = "".join(path.read_text("utf-8") for path in (PACKAGE / "static/pqadmin/css").glob("*.css"))
    text = re.sub(r"/\*.*?\*/|url\([^)]*\)|\"[^\"]*\"", "", text, flags=re.DOTALL)
    return set(re.findall(r"\.(-?[a-zA-Z_][\w-]*)", "".join(re.findall(r"([^{}]*)\{", text))))
