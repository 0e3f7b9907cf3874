"""Targets on pages: of one queue in its settings and on its page, by pattern with a preview, and the rights."""

import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import msgspec
import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from pqadmin.accounts.models import Grant
from pqadmin.accounts.roles import Role
from pqadmin.accounts.scope import forget
from pqadmin.dashboard.targets import views
from pqadmin.dashboard.targets.status import Line, lines
from pqadmin.display.format import age
from queues import Store, open_store
from queues.health import encode
from queues.health.breaches import Breaches
from queues.model.limits import Limits
from tests.conftest import Clock
from tests.dashboard.conftest import Desk

LIST, NEW = "/targets/", "/targets/new/"


@pytest.fixture(autouse=True)
def orders(store: Store) -> None:
    for name in ("orders:eu", "orders:us", "mail"):
        queue = store.create_queue(name)
        queue.push_many([(b"x", 1)] * 6)
        queue.pop_min()
        recorder = store.recorder()
        recorder.look()
        recorder.flush()


def granted(desk: Callable[..., Desk], role: Role, glob: str) -> Desk:
    person = desk(Role.NONE, "zoe")
    user = User.objects.get(username="zoe")
    Grant.objects.create(user=user, glob=glob, role=role, given_by="root", given_at=timezone.now())
    forget(user)
    return person


def edit(glob: str) -> str:
    return "/targets/of/" + quote(glob, safe=":*") + "/"


def test_a_queues_targets_are_set_inherited_and_switched_off(operator: Desk, store: Store) -> None:
    store.targets.set("orders:*", oldest=900, dead=5)
    page = operator.open("/queues/orders:eu/settings/")
    assert "Inherited: 15 min, from the pattern orders:*." in page
    assert "Inherited: 1 min, the default." in page
    saved = operator.send(page, "settings/", target_depth="1 000", target_wait="1.5 min", target_dead="off")
    assert "target of ready items, target of waits, target of dead items." in saved
    config = store.queue("orders:eu").config
    assert (config.target_depth, config.target_wait, config.target_dead) == (1_000, 90, 0)
    fields = saved.form("settings/")[1]
    assert (fields["target_depth"], fields["target_wait"], fields["target_dead"]) == ("1000", "1 min 30 s", "off")
    assert fields["target_oldest"] == ""
    again = operator.send(saved, "settings/", target_depth="", target_dead="")
    assert "target of ready items, target of dead items." in again
    assert store.queue("orders:eu").config.target_dead is None
    shown = operator.open("/queues/orders:eu/")
    assert "Wait of 95 of 100 1 min 30 s set here" in shown
    assert "Dead items 5 from orders:* 0 within" in shown


@pytest.mark.parametrize(
    ("field", "typed", "why"),
    [
        ("depth", "-1", "no whole number"),
        ("depth", "1e3", "no whole number"),
        ("depth", "9" * 14, "whole number up to"),
        ("oldest", "soon", "length of time"),
        ("oldest", "5 min 5 min", "length of time"),
        ("oldest", "<script>alert(1)</script>", "length of time"),
        ("oldest", "99999 d", "31,622,400 seconds"),
        ("wait", "-5 s", "length of time"),
        ("no_consumer", "0.5 s", "1 to"),
        ("growing", "1 min", "two minutes"),
        ("dead", "many", "no whole number"),
    ],
)
def test_what_is_wrong_is_said_at_its_field_and_nothing_is_changed(
    operator: Desk, store: Store, field: str, typed: str, why: str
) -> None:
    name = f"target_{field}"
    good = {"target_depth": "7", "target_dead": "7"}
    for path, form in (("/queues/mail/settings/", "settings"), (NEW, "targets")):
        to = "settings/" if form == "settings" else NEW
        refused = operator.send(operator.open(path), to, **{**good, "pattern": "orders:*", name: typed})
        assert refused.status == 422
        assert why in refused
        assert f"{form}-{name}_error" in refused.html
        assert refused.form(to)[1][name] == typed
    assert store.targets.patterns() == {}
    assert store.queue("mail").config.target_dead is None


def test_a_target_that_pushes_never_reach_is_refused_at_its_field(operator: Desk, store: Store) -> None:
    refused = operator.send(operator.open("/queues/mail/settings/"), "settings/", max_depth="50", target_depth="60")
    assert refused.status == 422
    assert "never reached" in refused
    assert "settings-target_depth_error" in refused.html
    assert store.queue("mail").config.max_depth is None


def test_a_pattern_is_previewed_saved_changed_and_removed(operator: Desk, store: Store) -> None:
    preview = operator.send(operator.open(NEW), NEW, pattern="orders:*", target_depth="5", preview="1")
    assert "2 queues match." in preview
    assert "orders:eu : Ready items 5 (5)" in preview
    assert "mail" not in preview.text.split("match.")[1].split("Save")[0]
    assert store.targets.patterns() == {}
    calm = operator.send(preview, NEW, target_depth="6", preview="1")
    assert "None is beyond these targets now." in calm
    saved = operator.send(preview, NEW, pattern="orders:*", target_depth="5", reason="agreed")
    assert saved.path == LIST
    assert "Saved the targets of orders:*." in saved
    assert "orders:* Ready items 5 2 2 orders:eu , orders:us" in saved.text.replace(" ,", " ,")
    changed = operator.send(operator.open(edit("orders:*")), edit("orders:*"), target_depth="", target_oldest="15 min")
    assert "Oldest age 15 min" in changed
    assert store.targets.patterns() == {"orders:*": Limits(oldest=900)}
    removed = operator.send(changed, f"{edit('orders:*')}remove/")
    assert store.targets.patterns() == {}
    assert "No pattern has targets" in removed
    again = operator.send(removed, NEW)
    assert "Saved the targets" in again
    assert store.targets.patterns() == {"orders:*": Limits(oldest=900)}
    audit = operator.open("/audit/")
    assert "set targets" in audit
    assert "removed targets" in audit
    assert "oldest age in seconds 900" in audit.text.replace(":", "")


def test_what_is_not_known_is_not_told_as_within(operator: Desk, store: Store) -> None:
    store.create_queue("fresh").push(b"x", 1)
    preview = operator.send(operator.open(NEW), NEW, pattern="fresh", target_depth="1", preview="1")
    assert "1 queue is not known to be within all of these targets." in preview
    assert "None is beyond" not in preview
    saved = operator.send(preview, NEW, pattern="fresh", target_depth="1")
    assert "fresh Ready items 1 1 1 unknown Remove" in saved
    store.queue("mail").configure(target_wait=10)
    (wait,) = [
        line for line in lines(store.queue("mail").status(), store.targets.rules(), store.now()) if line.limit == "wait"
    ]
    assert (wait.state, wait.beyond) == ("unknown", False), "no wait was recorded yet"


def test_a_queue_that_never_held_an_item_is_within_its_targets(operator: Desk, store: Store) -> None:
    """It is ok and not recorded, so its page and the list say of no target that it is not judged yet."""
    store.create_queue("fresh")
    operator.send(operator.open(NEW), NEW, pattern="fresh", target_oldest="15 min", target_dead="5")
    assert "fresh Oldest age 15 min · Dead items 5 1 none Remove" in operator.open(LIST)
    page = operator.open("/queues/fresh/")
    assert "not judged yet" not in page
    assert "Without a consumer 1 min default – within" in page


def test_the_time_in_breach_of_the_last_day_is_told_as_far_as_it_is_known(
    operator: Desk, desk: Callable[..., Desk], store: Store
) -> None:
    store.targets.set("orders:*", depth=5)
    spent(store, "orders:eu", Breaches(store.now().timestamp() - 90_000, beyond=of_hours(store, "depth", 30)))
    half = Breaches(
        store.now().timestamp() - 90_000, beyond=of_hours(store, "depth", 12), unknown=of_hours(store, "depth", 6, 14)
    )
    spent(store, "orders:us", half)
    eu, us = (operator.open(f"/queues/{name}/").text.replace("\u202f", " ") for name in ("orders:eu", "orders:us"))
    assert re.search("in breach, last 24 h (100|> 99) % Oldest", eu)
    assert re.search("5[0-4] % · no record of 25 % Oldest", us)
    listed = operator.open(LIST).text.replace("\u202f", " ")
    assert re.search(
        "orders:eu Ready items 5 (100|> 99) % orders:us Ready items 5 5[0-4] % · no record of 25 %", listed
    )
    assert "a part of these 24 hours is unknown" in listed
    key = store.context.keyspace.queue(store.queue("orders:us").id).health
    store.transact(lambda tr: tr.set(key, b"\x01\xff"))
    assert "not judged yet in breach, last 24 h unknown Oldest" in operator.open("/queues/orders:us/")
    assert "orders:eu" not in granted(desk, Role.VIEWER, "mail").open(LIST)


def test_times_in_breach_that_are_not_shown_are_counted(
    operator: Desk, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.targets.set("orders:*", depth=5)
    for name in ("orders:eu", "orders:us"):
        spent(store, name, Breaches(store.now().timestamp() - 90_000, beyond=of_hours(store, "depth", 30)))
    page = operator.open(LIST)
    assert "longest of" not in page
    assert "first 1,000" not in page
    monkeypatch.setattr(views, "MOST_BREACHES", 1)
    assert "The 1 longest of 2." in operator.open(LIST)
    monkeypatch.setattr(views, "MOST_JUDGED", 2)
    card = operator.open(LIST).text.split("In breach, last 24 h", 1)[1]
    assert "the first 1,000 were judged" in card


def of_hours(store: Store, limit: str, hours: int, ago: int = 0) -> dict[str, dict[int, int]]:
    """Return so many hours until some hours ago; until now with what has passed of this one."""
    now = int(store.now().timestamp())
    spent = dict.fromkeys(range(now // 3_600 - ago - hours, now // 3_600 - ago), 3_600)
    return {limit: spent if ago else {**spent, now // 3_600: now % 3_600}}


def spent(store: Store, name: str, breaches: Breaches) -> None:
    """Let a queue have spent its time so."""
    queue = store.queue(name)
    health = queue.status().health
    assert health is not None
    record = encode(msgspec.structs.replace(health, breaches=breaches))
    store.transact(lambda tr: tr.set(store.context.keyspace.queue(queue.id).health, record))
    queue.push(b"x", 1)  # screens read it again


def test_a_deeply_nested_form_is_refused(operator: Desk, store: Store) -> None:
    for path, to, told in ((NEW, NEW, "open it again"), ("/queues/mail/settings/", "settings/", "open the settings")):
        refused = operator.send(operator.open(path), to, pattern="orders:*", target_depth="3", seen="[" * 6_000)
        assert refused.status == 422
        assert told in refused
    assert store.targets.patterns() == {}


def test_wildcards_and_a_hostile_pattern(operator: Desk, store: Store) -> None:
    for typed in ("", " ", "<b>x", "a/b", "x" * 301, "*a" * 20):
        refused = operator.send(operator.open(NEW), NEW, pattern=typed, target_dead="3")
        assert refused.status == 422
        assert "targets-pattern_error" in refused.html
    assert operator.send(operator.open(NEW), NEW, pattern="orders:*").status == 422  # no target at all
    operator.send(operator.open(NEW), NEW, pattern="o?ders:**", target_dead="3")
    assert store.targets.patterns() == {"o?ders:*": Limits(dead=3)}
    page = operator.open(edit("o?ders:*"))
    assert page.status == 200
    assert page.form(edit("o?ders:*"))[1]["target_dead"] == "3"
    taken = operator.send(operator.open(NEW), NEW, pattern="o?ders:*", target_dead="4")
    assert taken.status == 422
    assert "already" in taken
    assert operator.open(edit("none*")).status == 404


def test_a_pattern_that_was_changed_meanwhile_is_not_overwritten(desk: Callable[..., Desk], store: Store) -> None:
    store.targets.set("orders:*", dead=3)
    ann, bob = desk(name="ann"), desk(name="bob")
    hers, his = ann.open(edit("orders:*")), bob.open(edit("orders:*"))
    ann.send(hers, edit("orders:*"), target_dead="9")
    told = bob.send(his, edit("orders:*"), target_dead="4")
    assert told.status == 409
    assert "Set now: Dead items 9" in told
    assert store.targets.patterns() == {"orders:*": Limits(dead=9)}
    assert "Saved the targets" in bob.send(told, edit("orders:*"))
    assert store.targets.patterns() == {"orders:*": Limits(dead=4)}
    store.targets.remove("orders:*")
    gone = bob.send(bob.open(NEW), NEW, pattern="orders:*", target_dead="1")
    assert "Saved" in gone


def test_a_form_that_is_sent_twice_is_executed_once(operator: Desk, store: Store) -> None:
    page = operator.open(NEW)
    action, fields = page.form(NEW)
    for _ in range(2):
        operator.post(action, fields, pattern="orders:*", target_dead="3")
    assert len(store.audit.entries(verb="set_targets").entries) == 1


def test_only_an_operator_of_all_queues_sets_patterns(desk: Callable[..., Desk], viewer: Desk, store: Store) -> None:
    store.targets.set("orders:*", dead=3)
    store.targets.set("mail*", dead=4)
    listed = viewer.open(LIST)
    assert "orders:*" in listed
    assert "mail*" in listed
    assert not listed.has_form("remove/")
    assert viewer.open(NEW).status == 403
    zoe = granted(desk, Role.OPERATOR, "orders:eu")
    hers = zoe.open(LIST)
    assert "orders:*" in hers
    assert "mail*" not in hers
    assert not hers.has_form("remove/")
    assert "New pattern" not in hers
    for path in (NEW, edit("orders:*")):
        assert zoe.open(path).status == 403
    assert zoe.client.post(f"{edit('orders:*')}remove/").status_code == 403
    assert zoe.client.post(edit("orders:*"), {"target_dead": "9"}).status_code == 403
    assert store.targets.patterns()["orders:*"] == Limits(dead=3)
    assert "Saved" in zoe.send(zoe.open("/queues/orders:eu/settings/"), "settings/", target_dead="8")
    for path in ("/queues/mail/settings/", "/queues/mail/targets/"):
        assert zoe.open(path).status == 404
    assert "1 orders:eu" not in hers


def test_the_queue_page_tells_how_long_a_target_is_missed(desk: Callable[..., Desk], store: Store) -> None:
    store.queue("orders:eu").configure(target_depth=5)
    recorder = store.recorder()
    recorder.look()
    recorder.flush()
    page = desk(Role.VIEWER).open("/queues/orders:eu/")
    assert "Ready items 5 set here 5 warning" in page
    assert "beyond the limit for 0." in page, "not since when it is told as a warning"
    assert "Oldest age 15 min default" in page
    store.queue("orders:eu").configure(target_depth=0)
    vic = desk(Role.VIEWER, "vic")
    fragment = vic.client.get("/queues/orders:eu/targets/", headers={"HX-Request": "true"}).content.decode()
    assert "no target" in fragment
    assert "<html" not in fragment
    whole = vic.open("/queues/orders:eu/targets/")
    assert "Ready items off set here 5 no target" in whole
    assert "Max end" in whole, "opened as a page, it leads to the page of the queue"
    store.attach("theirs", prefix=b"\x15theirs")
    assert "Targets of this queue" not in desk(Role.VIEWER, "val").open("/queues/theirs/")


def test_a_queue_that_nothing_was_taken_from_is_quiet(operator: Desk, store: Store) -> None:
    fresh = store.create_queue("fresh")
    fresh.configure(target_oldest=0.001)
    fresh.push(b"x", 1)
    recorder = store.recorder()
    recorder.look()
    store.queue("fresh").push(b"y", 1)
    store.targets.set("fresh", dead=2)
    recorder.look()
    recorder.flush()
    page = operator.open("/queues/fresh/")
    assert "warning" not in page.text.split("Standing")[1].split("Dead items")[0]


def test_damaged_targets_are_told_and_can_be_removed(operator: Desk, store: Store) -> None:
    keyspace = store.context.keyspace
    key = keyspace.target_patterns.key("or*")
    store.transact(lambda tr: tr.set(key, b"\x01\x00"))
    store.transact(lambda tr: tr.set(keyspace.target_defaults, b""))
    page = operator.open(LIST)
    assert "The targets of or* cannot be read and set nothing." in page
    assert "The stored defaults cannot be read" in page
    shown = operator.open("/queues/orders:eu/")
    assert "unknown targets cannot be read" in shown
    assert operator.open("/").status == 200
    after = operator.send(page, f"{edit('or*')}remove/")
    assert "or*" not in after.text.split("By pattern")[1]


def test_the_overview_judges_by_targets_as_they_are_set_without_a_recorder_between(
    operator: Desk, store: Store
) -> None:
    assert "target 5" not in operator.open("/")
    store.targets.set("orders:*", depth=5)
    both = operator.open("/")
    assert both.text.count("5 ready, target 5") >= 2
    store.queue("orders:eu").configure(target_depth=0)
    store.targets.set("orders:us", depth=6)
    assert "target 5" not in operator.open("/")


def test_growth_where_nothing_is_taken_is_told_beside_its_target(desk: Callable[..., Desk], tmp_path: Path) -> None:
    clock = Clock()
    with open_store(f"lmdb:{tmp_path / 'clocked'}", clock=clock) as store:
        jobs = store.create_queue("jobs")
        jobs.push_many([(b"x", 1)] * 3)
        jobs.pop_min()
        recorder = store.recorder(count=clock)
        for _ in range(60):
            recorder.look()
            jobs.push_many([(b"x", 1)] * 20)
            clock.advance(10)
        recorder.flush()
        status = jobs.status()
        found = {line.limit: line for line in lines(status, store.targets.rules(), store.now())}
    assert status.health.verdict.codes == ("no-consumer",)
    assert (found["no_consumer"].state, found["growing"].state) == ("critical", "warning")
    assert found["growing"].value == "10 min"


def judged(store: Store, clock: Clock, seconds: int) -> dict[str, Line]:
    """Let a recorder look every ten seconds, and return the lines of the queue's targets."""
    recorder = store.recorder(count=clock)
    for _ in range(seconds // 10):
        clock.advance(10)
        recorder.look()
    recorder.flush()
    return {line.limit: line for line in lines(store.queue("jobs").status(), store.targets.rules(), store.now())}


def test_why_a_value_beyond_its_limit_does_not_count_is_told_by_the_rule_that_holds(tmp_path: Path) -> None:
    clock = Clock()
    with open_store(f"lmdb:{tmp_path / 'clocked'}", clock=clock) as store:
        jobs = store.create_queue("jobs")
        store.targets.set("*", no_consumer=60, oldest=900, depth=200)
        jobs.push_many([(b"x", 1)] * 99)
        for _ in range(9):  # one comes by every five minutes
            jobs.pop_min()
            judged(store, clock, 300)
        jobs.pop_min()
        found = judged(store, clock, 120)
        assert (found["no_consumer"].value, found["no_consumer"].state) == ("110 s", "within")
        assert found["no_consumer"].note == "counts after 14 min, three times its usual pause"
        jobs.push_many([(b"x", 1)] * 200)
        assert judged(store, clock, 10)["depth"].note == "counts after 30 s beyond the limit"
        held = jobs.lease_many(2, seconds=3_600)
        found = judged(store, clock, 120)
        assert found["no_consumer"].note == "does not count: what is held may be worked on"
        jobs.ack_many(held)
        jobs.pause(reason="deploy")
        assert judged(store, clock, 120)["depth"].note == "does not count during a pause"


def test_a_stall_that_ended_is_beyond_its_target_until_then(tmp_path: Path) -> None:
    clock = Clock()
    with open_store(f"lmdb:{tmp_path / 'clocked'}", clock=clock) as store:
        jobs = store.create_queue("jobs")
        jobs.push_many([(b"x", 1)] * 99)
        jobs.pop_min()
        assert judged(store, clock, 300)["no_consumer"].state == "critical"
        jobs.pop_min()
        ended = judged(store, clock, 20)["no_consumer"]
    assert (ended.state, ended.value) == ("critical", "10 s")
    assert ended.until is not None
    assert clock() - ended.until.timestamp() == pytest.approx(10, abs=1)


@pytest.mark.parametrize("limit", [120, 300])
def test_growth_beyond_its_target_lasts_longer_than_it(tmp_path: Path, limit: int) -> None:
    clock = Clock()
    with open_store(f"lmdb:{tmp_path / 'clocked'}", clock=clock) as store:
        store.targets.set("*", growing=limit, no_consumer=0)
        jobs = store.create_queue("jobs")
        recorder = store.recorder(count=clock)
        for _ in range(limit // 10 + 8):
            jobs.push_many([(b"x", 1)] * 20)
            jobs.pop_min()
            clock.advance(10)
            recorder.look()
        recorder.flush()
        found = {line.limit: line for line in lines(jobs.status(), store.targets.rules(), store.now())}["growing"]
    assert (found.state, found.value) == ("warning", age(limit + 60))
    assert found.since is not None
    assert clock() - found.since.timestamp() == pytest.approx(65, abs=20)


def test_the_time_beyond_a_target_begins_where_it_was_crossed(desk: Callable[..., Desk], tmp_path: Path) -> None:
    clock = Clock()
    with open_store(f"lmdb:{tmp_path / 'clocked'}", clock=clock) as store:
        jobs = store.create_queue("jobs")
        jobs.push_many([(b"x", 1)] * 3)
        jobs.pop_min()
        store.targets.set("*", no_consumer=120, oldest=300, growing=0)
        recorder = store.recorder(count=clock)
        recorder.look()
        for _ in range(60):
            clock.advance(10)
            recorder.look()
        recorder.flush()
        found = {line.limit: line for line in lines(jobs.status(), store.targets.rules(), store.now())}
    assert {limit for limit, line in found.items() if line.beyond} == {"no_consumer", "oldest"}
    since = {limit: clock() - line.since.timestamp() for limit, line in found.items() if line.since is not None}
    assert since == {"no_consumer": pytest.approx(480, abs=11), "oldest": pytest.approx(300, abs=1)}
    assert (found["no_consumer"].value, found["oldest"].value) == ("10 min", "10 min")
    assert (found["no_consumer"].state, found["depth"].state) == ("critical", "off")
