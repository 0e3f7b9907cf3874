"""The styleguide shows every component: each partial template."""

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
    "dashboard/_queue_jobs.html": FRAME,
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


def test_every_component_is_on_the_styleguide(client: Client, store: Store, db: None) -> None:
    somebody = User.objects.create_user("boss")
    grant(somebody, Role.ADMIN)
    client.force_login(somebody)
    answer = client.get("/styleguide/")
    assert answer.status_code == 200
    shown = {template.name for template in answer.templates}
    partials = {str(path.relative_to(ROOT / "templates")) for path in (ROOT / "templates").rglob("_*.html")}
    assert partials - shown == set(ELSEWHERE), "put it on the styleguide, or say in ELSEWHERE why not"
