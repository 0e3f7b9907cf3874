"""The styleguide shows every component: each partial template, and each class that the style sheets know."""

import re
from pathlib import Path

from django.contrib.auth.models import User
from django.test import Client

from pqadmin.accounts.roles import Role, grant
from queues import Store

ROOT = Path(__file__).resolve().parents[2]
#: Partials that are no component of their own, and why each is not there; the browser suite opens them on their pages.
FRAME = "a frame: nothing of its own but what it holds, and that is shown"
ONE_FORM = "the form of one page; each kind of field, preview, warning and list that it is made of is shown"
CHARTS = "charts, which need a history"
ELSEWHERE = {
    "_error.html": FRAME,
    "dashboard/_crumbs.html": FRAME,
    "dashboard/_items_action.html": FRAME,
    "dashboard/_bulk.html": FRAME,
    "dashboard/_items.html": FRAME,
    "dashboard/_keys_dialog.html": FRAME,
    "dashboard/_queues.html": FRAME,
    "dashboard/_act_move.html": ONE_FORM,
    "dashboard/_bulk_act.html": ONE_FORM,
    "dashboard/_edit.html": ONE_FORM,
    "dashboard/_resume.html": ONE_FORM,
    "dashboard/_in_sheet.html": "a form as is shown, beside the page of its queue",
    "dashboard/_sheet.html": "shut until an act is begun on the page of a queue or an item",
    "charts/_chart.html": CHARTS,
    "charts/_files.html": CHARTS,
    "charts/_overall.html": CHARTS,
    "charts/_ranges.html": CHARTS,
    "dashboard/_last_hour.html": CHARTS,
    "dashboard/_sample_runs.html": "a notice as is shown, which is there only while the sample load runs on this site",
}
#: Classes of frames and forms that are on one page only, and those that the library of charts gives to what it draws.
ELSEWHERE_CLASSES = """
    act-value after all-charts aside big-word board-choice both-ends bulk bulk-acts by-enter chart charts
    charts-notes code compact consequence deeds drop edit everything fate faults figure filter-help float glob-row
    group-acts h12 h37 h50 h62 h87 heat-1 heat-2 heat-3 heat-4 heat-5 heat-gap heat-key inset job-figures job-head
    kept last-hour lease-instead marks may measure minted more movers narrow narrow-start numbers open pad panels
    past pause-link picker plot prose qr ranges reckoning reveal row-acts scope screen secret settings side slim
    targets then u-legend u-marker u-select u-value uplot wall-link wide-word
"""


def test_every_component_is_on_the_styleguide(client: Client, store: Store, db: None) -> None:
    somebody = User.objects.create_user("boss")
    grant(somebody, Role.ADMIN)
    client.force_login(somebody)
    answer = client.get("/styleguide/")
    assert answer.status_code == 200
    shown = {template.name for template in answer.templates}
    partials = {str(path.relative_to(ROOT / "templates")) for path in (ROOT / "templates").rglob("_*.html")}
    assert partials - shown == set(ELSEWHERE), "put it on the styleguide, or say in ELSEWHERE why not"
    used = {word for words in re.findall(r'class="([^"]*)"', answer.content.decode()) for word in words.split()}
    assert _classes() - used == set(ELSEWHERE_CLASSES.split()), "shown now, or in no style sheet: leave it out"


def _classes() -> set[str]:
    """Return the classes that the style sheets name."""
    text = "".join(path.read_text("utf-8") for path in (ROOT / "static/pqadmin/css").glob("*.css"))
    text = re.sub(r"/\*.*?\*/|url\([^)]*\)|\"[^\"]*\"", "", text, flags=re.DOTALL)
    return set(re.findall(r"\.(-?[a-zA-Z_][\w-]*)", "".join(re.findall(r"([^{}]*)\{", text))))
