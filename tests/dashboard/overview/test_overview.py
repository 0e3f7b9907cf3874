"""The overview: what an operator sees of all queues, and how they find the one they look for."""

import html
import re
from collections.abc import Callable
from threading import Event, Thread, Timer
from typing import Any
from urllib.parse import unquote

import pytest
from django.test import Client

from pqadmin.accounts.roles import Role
from pqadmin.live import monitor as monitors
from pqadmin.live.board import board as boards
from pqadmin.live.board.rates import WINDOW
from pqadmin.live.off_screen_reads import OffScreenReads
from queues import Store
from tests.dashboard.conftest import Desk
from tests.others import PREFIX, Others


def test_an_empty_site_says_what_to_do_next(operator: Desk) -> None:
    page = operator.open("/")
    assert "No queues yet" in page
    assert "/new/" in page.links
    assert page.title == "ok · Queues · pqadmin"
    assert "Queues that you see 0 No queues yet" in operator.open("/accounts/me/")


def test_a_row_shows_depth_both_ends_and_state(operator: Desk, store: Store) -> None:
    jobs = store.create_queue("orders:eu:new")
    jobs.push_many([(b'{"order":1}', 3), (b'{"order":2}', -7), (b'{"order":3}', 12)])
    page = operator.open("/")
    row = page.rows["orders:eu:new"]
    assert row["ready"] == "3"
    assert row["min"].startswith('-7{"order":2}')
    assert row["max"].startswith('12{"order":3}')
    assert row["verdict"] == "ok · nothing taken yet"
    assert page.title == "ok · Queues · pqadmin"
    assert page.html.count('class="h100"') == 3  # three bands hold one item each


def test_each_tile_leads_to_the_queues_that_it_counts(operator: Desk, store: Store) -> None:
    store.create_queue("empty")
    store.create_queue("waits").push(b"x", 1)
    store.create_queue("held").push(b"x", 1)
    store.queue("held").lease(seconds=60)
    tiles = operator.open("/").html.partition('<dl class="sum"')[2].partition("</dl>")[0]
    listed = {
        unquote(link).partition("?")[2]: set(operator.open(html.unescape(link)).rows)
        for link in re.findall(r'href="([^"]+)"', tiles)
    }
    assert listed["q=depth>0"] == listed["q=age>0&amp;sort=-oldest"] == {"waits"}
    assert listed["q=leased>0"] == {"held"}
    assert {"q=in>0", "q=out>0", "q=delayed>0", "q=dead>0", "q=level:critical", "q=level:ok"} <= set(listed)
    assert listed["q=level:ok"] == {"empty", "waits", "held"}


def test_rates_tell_their_window_on_the_overview_as_on_a_queues_page(operator: Desk, store: Store) -> None:
    store.create_queue("jobs")
    overview, queue = operator.open("/"), operator.open("/queues/jobs/")
    for rate in ("in", "out"):
        assert f"{rate} · last {WINDOW:.0f} s" in overview
        assert f"{rate} · last {WINDOW:.0f} s" in queue
    assert overview.html.count(f'title="last {WINDOW:.0f} s"') == 2


def test_the_heading_of_a_group_names_a_queue_of_which_nothing_is_known(operator: Desk, store: Store) -> None:
    Others(store).push((1, b"a"))
    store.attach("legacy:parcels", prefix=PREFIX)
    store.create_queue("mail:out")
    page = operator.open("/?group=group")
    assert "unknown: legacy:parcels" in page
    assert "ok: mail:out" not in page


def test_a_paused_queue_shows_person_and_reason(operator: Desk, store: Store) -> None:
    store.create_queue("a")
    store.create_queue("z").pause(reason="ledger closing", by="ops-2")
    page = operator.open("/")
    assert page.order == ["z", "a"]
    assert "paused by ops-2" in page.rows["z"]["verdict"]
    assert "ledger closing" in page.rows["z"]["verdict"]


def test_all_of_a_long_reason_is_on_the_queues_own_pages(operator: Desk, store: Store) -> None:
    reason = "ledger closing, " * 30 + "ask Ann"
    store.create_queue("z").pause(reason=reason, by="ops-2")
    assert "ledger closing" in operator.open("/").rows["z"]["verdict"]
    assert "ask Ann" not in operator.open("/").rows["z"]["verdict"]
    for path in ("/queues/z/", "/queues/z/history/"):
        assert reason in operator.open(path).text, path


@pytest.fixture
def rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have pages read the store, and overviews worked out, for a tiny share of the time."""
    monkeypatch.setattr(monitors, "PAGE_PAUSE", 60.0)
    monkeypatch.setattr(monitors, "PAGE_SHARE", 1e9)
    monkeypatch.setattr(boards, "CHEAP", 0.0)
    monkeypatch.setattr(boards, "REBUILD_SHARE", 1e9)


@pytest.mark.usefixtures("rarely")
def test_an_action_shows_on_the_next_page_however_recent_the_last_read(operator: Desk, store: Store) -> None:
    store.create_queue("jobs")
    assert "paused by" not in operator.open("/").text
    store.create_queue("mail")
    assert operator.open("/").order == ["jobs"], "pages read the store for a share of the time only"
    operator.send(operator.open("/queues/jobs/pause/"), "/pause/", reason="ledger")
    page = operator.open("/")
    assert set(page.order) == {"jobs", "mail"}
    assert "paused by ada" in page.text


@pytest.mark.usefixtures("rarely")
def test_what_was_refused_is_no_act(operator: Desk, store: Store) -> None:
    store.create_queue("jobs")
    operator.open("/")
    store.create_queue("mail")
    assert operator.client.post("/queues/jobs/pause/", {}).status_code == 422
    assert Client().post("/queues/jobs/resume/", {}).status_code == 302
    assert operator.open("/").order == ["jobs"]


@pytest.mark.usefixtures("rarely")
def test_an_action_shows_even_while_a_page_is_being_read(
    operator: Desk, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitors, "FIRST_PAGE", 60.0)
    store.create_queue("jobs")
    operator.open("/")
    monitor = monitors.get_monitor()
    monitor.outdated()
    under_way, go_on = Event(), Event()
    read = OffScreenReads.everything

    def slowly(*args: Any, **kwargs: Any) -> bool:
        complete = read(*args, **kwargs)
        under_way.set()
        assert go_on.wait(60)
        return complete

    monkeypatch.setattr(OffScreenReads, "everything", slowly)
    reader = Thread(target=monitor.refresh)
    reader.start()
    assert under_way.wait(60)
    operator.send(operator.open("/queues/jobs/pause/"), "/pause/", reason="ledger")
    Timer(0.05, go_on.set).start()
    assert "paused by ada" in operator.open("/").text
    reader.join()


def test_the_filter_keeps_what_matches(operator: Desk, store: Store) -> None:
    store.create_queue("mail:digest").push_many([(b"x", 1)] * 5)
    store.create_queue("mail:welcome")
    store.create_queue("sms", kind="fifo")
    assert operator.open("/?q=mail").order == ["mail:digest", "mail:welcome"]
    assert operator.open("/?q=mail+depth>3").order == ["mail:digest"]
    assert operator.open("/?q=-kind:fifo+ready<1").order == ["mail:welcome"]
    page = operator.open("/?q=depth>3+nonsense<<1")
    assert page.order == ["mail:digest"]
    assert "“nonsense<<1” is not understood" in page
    nothing = operator.open("/?q=nowhere")
    assert "No queue matches" in nothing
    assert "There are 3 queues; the filter hides all of them." in nothing
    assert "looked for in names" not in nothing
    mistyped = operator.open("/?q=levle:critical+foo:bar")
    assert "“levle:critical” was looked for in names" in mistyped
    assert "Did you mean level:critical ?" in mistyped
    assert "“foo:bar” was looked for in names" in mistyped
    assert mistyped.text.count("Did you mean") == 1
    assert "looked for in names" not in operator.open("/?q=mail:welcome"), "a name may have a colon"


def test_groups_and_sorting_come_from_the_address(operator: Desk, store: Store) -> None:
    store.create_queue("b:1").push_many([(b"x", 1)] * 2)
    store.create_queue("b:2").push_many([(b"x", 1)] * 9)
    store.create_queue("a:1").push(b"x", priority=1)
    assert operator.open("/?group=name").order == ["a:1", "b:1", "b:2"]
    assert operator.open("/?group=name&sort=-ready").order == ["b:2", "b:1", "a:1"]
    assert operator.open("/?group=name&sort=-name").order == ["b:2", "b:1", "a:1"]
    grouped = operator.open("/?group=group")
    assert grouped.order == ["a:1", "b:1", "b:2"]
    assert "b: ok · 2 queues · 11 ready" in grouped
    assert operator.open("/?group=%00&sort=__class__").order == ["a:1", "b:1", "b:2"]


def test_a_long_list_goes_on_by_cursor(operator: Desk, store: Store) -> None:
    names = [f"q{n:03}" for n in range(230)]
    for name in names:
        store.create_queue(name)
    seen: list[str] = []
    page = operator.open("/?group=name")
    while True:
        seen += page.order
        following = [link for link in page.links if "after=" in link]
        if not following:
            break
        page = operator.open("/" + following[0])
    assert seen == names


def test_a_fragment_is_the_very_table_of_the_page(operator: Desk, store: Store) -> None:
    store.create_queue("jobs")
    fragment = operator.open("/?q=jobs", HX_Target="section#queues", HX_Request="true")
    assert fragment.html.lstrip().startswith('<section id="queues"')
    assert fragment.order == ["jobs"]


def test_viewers_see_everything_and_are_offered_no_act(viewer: Desk, store: Store) -> None:
    store.create_queue("jobs").push(b"x", priority=1)
    page = viewer.open("/")
    assert page.rows["jobs"]["ready"] == "1"
    assert not [link for link in page.links if "push" in link or link == "/new/"]
    queue = viewer.open("/queues/jobs/")
    assert not queue.has_form("push/")
    assert not [link for link in queue.links if "pop" in link or "pause" in link]


def test_the_theme_is_chosen_without_script(operator: Desk) -> None:
    page = operator.open("/audit/")
    back = operator.send(page, "/theme/", theme="dark", next="/audit/")
    assert 'data-theme="dark"' in back.html
    assert back.path == "/audit/"
    astray = operator.send(back, "/theme/", theme="", next="//evil.example/")
    assert astray.path == "/"
    assert "data-theme" not in astray.html


def test_groups_are_shut_without_script_and_stay_so_with_the_person(
    operator: Desk, desk: Callable[..., Desk], store: Store
) -> None:
    for name in ("a:1", "b:1", "b:2", "alone"):
        store.create_queue(name)
    store.queue("b:2").pause(reason="", by="ops-2")
    page = operator.open("/?group=group")
    assert page.order == ["b:2", "b:1", "alone", "a:1"]
    assert "warning: b:2" in page
    page = operator.send(page, "/fold/", shut="b:", next="/?group=group")
    assert page.order == ["alone", "a:1"]
    assert "warning: b:2" in page
    page = operator.send(page, "/fold/", shut="", next="/?group=group")
    assert page.order == ["a:1"]
    assert len(operator.open("/").order) == 4, "other orders show every queue"
    assert desk(Role.OPERATOR).open("/?group=group").order == ["b:2", "b:1", "alone", "a:1"]
    page = operator.send(page, "/fold/", open="b:", next="/?group=group")
    assert page.order == ["b:2", "b:1", "a:1"]


def test_windows_of_shut_groups_are_of_headings(operator: Desk, store: Store) -> None:
    for n in range(210):
        store.create_queue(f"g{n % 3}:q{n:03}")
    page = operator.open("/?group=group")
    assert len(page.order) == 100
    page = operator.send(page, "/fold/", shut="g0:", next="/?group=group")
    assert len(page.order) == 99
    assert page.order[0] == "g1:q001"
    (further,) = {link for link in page.links if "after=" in link}
    assert len(operator.open("/" + further).order) == 41


def test_compact_rows_are_chosen_without_script_and_kept(operator: Desk, store: Store) -> None:
    store.create_queue("jobs")
    page = operator.open("/?q=jobs")
    assert 'class="q compact"' not in page.html
    chosen = page.form("/favorite/")[1]
    page = operator.post("/rows/", chosen, rows="compact")
    assert page.response.request["QUERY_STRING"] == "q=jobs"
    assert 'class="q compact"' in page.html
    assert 'class="q compact"' in operator.open("/", HX_Target="section#queues", HX_Request="true").html
    assert 'class="q compact"' not in operator.post("/rows/", chosen, rows="").html


def test_a_favorite_is_chosen_without_script_and_kept_with_the_person(
    operator: Desk, desk: Callable[..., Desk], store: Store
) -> None:
    jobs, mail = store.create_queue("jobs"), store.create_queue("mail")
    page = operator.open("/?group=name&first=favorites")
    assert page.order == ["jobs", "mail"]
    page = operator.send(page, "/favorite/", on=str(mail.id))
    assert page.order == ["mail", "jobs"]
    assert operator.open("/?q=is:favorite").order == ["mail"]
    assert desk(Role.VIEWER).open("/?q=is:favorite").order == []
    page = operator.send(page, "/favorite/", off=str(mail.id))
    assert page.order == ["jobs", "mail"]
    operator.send(page, "/favorite/", on=str(jobs.id + 1))
    assert operator.open("/?q=is:favorite").order == [], "an absent queue is no favorite"


def test_a_queue_that_cannot_be_read_is_a_row_that_says_so(operator: Desk, store: Store) -> None:
    store.create_queue("good").push(b"x", priority=1)
    bad = store.create_queue("bad")

    def damage(tr: Any) -> None:
        tr.set(store.context.keyspace.configs.key(bad.id), b"\x07nonsense")
        tr.add(store.context.keyspace.queue(bad.id).change, 1)

    store.transact(damage)
    page = operator.open("/")
    assert page.order == ["bad", "good"]
    assert "unreadable" in page.rows["bad"]["verdict"]
    assert page.rows["bad"]["ready"] == "–"
    assert page.rows["good"]["ready"] == "1"
    assert operator.open("/?q=reason:unreadable").order == ["bad"]
