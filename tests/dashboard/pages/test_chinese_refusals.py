"""What is refused in Simplified Chinese: the sentences of the queue core too."""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.utils import translation

from pqadmin.dashboard.jobs.words import tell
from pqadmin.dashboard.push import pasted
from pqadmin.display.errors import said
from pqadmin.pages.refusals import explain
from queues import Queue, Store, errors
from queues.bulk.bulk_job import failure_of, write_job
from queues.model import records
from tests.dashboard.conftest import Desk
from tests.dashboard.pages.test_chinese import english

Meanwhile = Callable[[Store], object]


@pytest.fixture(autouse=True)
def orders(store: Store) -> Queue:
    """Queues of every kind, named and filled without a Latin letter."""
    own = store.create_queue("订单")
    own.push_many([(b"1", 1), (b"2", 2), (b"3", 3)])
    own.push(b"4", priority=4, delay=timedelta(hours=1))
    store.create_queue("邮件", kind="fifo").enqueue_many([b"1", b"2"])
    store.create_queue("文字", priority_type="str").push(b"1", priority="一")
    store.create_queue("满").configure(max_depth=1)
    store.create_queue("小").configure(max_value=1)
    store.create_queue("关").configure(closed=True)
    store.attach("外来", prefix=("外来",)).push(b"1", priority=1)
    return own


def nothing(store: Store) -> None:
    """Let the form be sent at once."""


def act(name: str, state: str = "ready") -> str:
    return f"/queues/订单/act/?act={name}&id={{{state}}}"


FORMS: dict[str, tuple[str, str, dict[str, str], Meanwhile]] = {
    "a name with a space": ("/new/", "/new/", {"name": "订 单", "kind": "fifo"}, nothing),
    "a taken name": ("/new/", "/new/", {"name": "订单", "kind": "fifo"}, nothing),
    "edges that fall": ("/new/", "/new/", {"name": "新", "edges": "5, 2"}, nothing),
    "a priority that is none": ("/queues/订单/push/", "push/", {"value": "1", "priority": "一"}, nothing),
    "too large a value": ("/queues/订单/push/", "push/", {"value": "1" * 90_001, "priority": "1"}, nothing),
    "a full queue": ("/queues/满/push/", "push/", {"value": "1", "priority": "1"}, lambda s: fill(s)),
    "too late a time": (
        "/queues/订单/push/",
        "push/",
        {"value": "1", "priority": "1", "when": "delay", "delay": "999999999.9", "unit": "d"},
        nothing,
    ),
    "a paused queue": ("/queues/订单/pop/", "pop/", {}, lambda s: s.queue("订单").pause(reason="结账")),
    "another item at the end": ("/queues/订单/pop/", "pop/", {}, lambda s: s.queue("订单").push(b"0", priority=0)),
    "another depth to delete": ("/queues/订单/delete/", "delete/", {"confirm": "订单"}, lambda s: more(s, 5_000)),
    "the wrong name to purge foreign items": ("/queues/外来/purge/", "purge/", {"confirm": "外"}, nothing),
    "moved nearly nowhere": (act("move"), "/act/", {"to": "订单单"}, nothing),
    "delayed items moved to an attached queue": (act("move", "delayed"), "/act/", {"to": "外来"}, nothing),
    "shifted too far": (act("reprioritize"), "/act/", {"how": "shift", "shift": "9" * 614}, nothing),
    "leased when it was leased": (act("delete"), "/act/", {}, lambda s: s.queue("订单").lease(seconds=60, worker="乙")),
    "edited when it was edited": (
        "/queues/订单/items/{ready}/edit/",
        "edit/",
        {"value": "5"},
        lambda s: s.actions("乙").edit_item("订单", s.queue("订单").items().items[0].id, b"6", expect=b"1"),
    ),
    "a runbook with a password": ("/queues/订单/settings/", "settings/", {"runbook": "https://a:b@c/"}, nothing),
    "many rules": ("/queues/订单/settings/", "settings/", {"redact": "\n".join(map(str, range(200)))}, nothing),
    "settings changed meanwhile": (
        "/queues/订单/settings/",
        "settings/",
        {"note": "一"},
        lambda s: s.actions("乙").configure("订单", note="二"),
    ),
    "attached where another is": (
        "/attach/",
        "/attach/#main",
        {"name": "新", "prefix_text": "('外来', 1)", "step": "look"},
        nothing,
    ),
    "all moved to a name that is none": (
        "/queues/订单/bulk/?act=move&state=ready",
        "act=move&state=ready",
        {"to": "订 单"},
        nothing,
    ),
    "all deleted, not those confirmed": (
        "/queues/订单/bulk/?act=delete&state=ready",
        "act=delete&state=ready",
        {},
        lambda s: more(s, 50),
    ),
}


def fill(store: Store) -> None:
    store.queue("满").push(b"1", priority=1)


def more(store: Store, n: int) -> None:
    for _ in range(0, n, 1_000):
        store.queue("订单").push_many([(b"", 9)] * min(n, 1_000))


def promote(store: Store) -> None:
    store.actions("乙").promote("订单", [store.queue("订单").delayed().items[0].id])


@pytest.mark.parametrize("case", FORMS)
def test_a_refused_form_is_all_chinese(case: str, chinese_admin: Desk, store: Store, orders: Queue) -> None:
    opened, to, typed, meanwhile = FORMS[case]
    ids = {"ready": orders.items().items[0].id, "delayed": orders.delayed().items[0].id}
    form = chinese_admin.open(opened.format(**ids))
    meanwhile(store)
    refused = chinese_admin.send(form, to, **typed)
    assert refused.status >= 400
    assert not english(refused.html)


def test_what_was_restored_by_another_is_told_in_chinese(chinese_admin: Desk, store: Store) -> None:
    store.actions("甲").pop("订单")
    trash = chinese_admin.open("/trash/")
    (entry,) = store.trash.entries().entries
    store.actions("乙").undo(entry.id)
    told = chinese_admin.send(trash, "restore/")
    assert "这已由 乙 于" in told
    assert not english(told.html)


@pytest.mark.parametrize(
    ("record", "reason"),
    [(b"\x07", "无法读取：存储中有一条记录由更新的"), (b"\x01\x00\x00\x02[]", "无法读取：它的字节已损坏（")],
)
def test_why_a_queue_cannot_be_read_is_told_in_chinese(
    chinese_admin: Desk, store: Store, record: bytes, reason: str
) -> None:
    bad = store.queue("关")

    def damage(tr: Any) -> None:
        tr.set(store.context.keyspace.configs.key(bad.id), record)
        tr.add(store.context.keyspace.queue(bad.id).change, 1)

    store.transact(damage)
    page = chinese_admin.open("/")
    assert reason in page
    assert not english(re.sub(r"（\w+Error）", "", page.html)), "but the kind of what nothing foresaw"


LINES = [
    '{"value": "1"}',
    '{"value": "1", "priority": "一"}',
    '{"value": "1", "priority": 1, "priority": 2}',
    '{"value": "1", "priority": 1, "名": 1}',
    '{"value_base64": "%", "priority": 1}',
    '{"value": "1", "priority": 1e999}',
    '{"value": "1", "priority": 1',
    "一",
]
CSV = [
    "名\n1",
    "value,value\n1,1",
    'value,priority\n"1',
    "value,priority\n1,一",
]


@pytest.mark.parametrize(("form", "lines"), [("ndjson", LINES), ("csv", CSV)])
def test_bad_lines_are_told_in_chinese(form: str, lines: list[str], chinese_admin: Desk) -> None:
    page = chinese_admin.open("/queues/订单/push/many/")
    for typed in lines:
        refused = chinese_admin.send(page, "many/", items=typed, format=form)
        assert refused.status >= 400
        assert not english(refused.html), typed
        assert not english(chinese_admin.send(page, "many/", items=typed, format=form, check="lines").html), typed


@pytest.mark.parametrize("language", ["en", "zh-hans"])
@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("订单", '{"value": "1", "priority": "一"}'),
        ("订单", '{"value": "1", "priority": true}'),
        ("订单", '{"value": "1"}'),
        ("文字", '{"value": "1", "priority_base64": "%s"}' % ("AAAA" * 90)),
    ],
)
def test_what_is_wrong_with_a_line_is_said_without_a_full_stop_as_by_command(
    kind: str, line: str, language: str, store: Store
) -> None:
    (bad,) = pasted.read(line.encode(), file_format="ndjson", priority_type=store.queue(kind).priority_type).bad
    with translation.override(language):
        assert said(bad.reason)[-1] not in ".。"
        assert language != "en" or said(bad.reason) == str(bad.reason)
        assert language == "en" or not english(said(bad.reason))


def test_why_a_job_has_failed_is_told_in_chinese_and_an_older_ones_as_it_was_kept(
    chinese_admin: Desk, store: Store
) -> None:
    acts = store.actions("甲")
    store.create_queue("数", priority_type="float")
    store.queue("订单").push(b"1", priority=2**53 + 1)
    begun = acts.begin_bulk("move", "订单", to="数")
    failed = acts.run_bulk(begun.id)
    assert failed.failure == "The priority is a whole number that no float holds exactly."
    assert acts.job(begun.id) == failed
    told = chinese_admin.open(f"/jobs/{begun.id}/")
    assert not english(told.html)
    key = store.context.keyspace.bulk.key(bytes.fromhex(begun.id))
    header, _ = records.decode(store.read(lambda tr: tr.get(key).wait()) or b"")
    damaged: list[Any] = [None, ["{x}", {}], ["{x.y}", {"x": 1}], 7, ["Other words.", {}]]
    for words in damaged:
        store.transact(lambda tr, words=words: tr.set(key, records.encode(header | {"failure_words": words})))
        assert failed.failure in chinese_admin.open(f"/jobs/{begun.id}/"), words


def test_a_job_does_not_say_that_nothing_was_changed(store: Store) -> None:
    begun = store.actions("甲").begin_bulk("delete", "订单")
    refused = errors.BadPriority("Shifted so far, a priority would not fit the queue's type. Nothing was changed.")
    failed = replace(begun, failure=failure_of(refused))
    assert failed.failure == "Shifted so far, a priority would not fit the queue's type."
    store.transact(lambda tr: write_job(tr, store.context.keyspace, failed))
    kept = store.actions("甲").job(begun.id)
    for language, told in (("en", failed.failure), ("zh-hans", "调整这么多，优先级就不符合队列的类型了。")):
        with translation.override(language):
            assert tell(kept, kept.began_at)["failure"] == told


ADDRESSES = [
    "/queues/订单单/",
    "/queues/外来/pause/",
    "/queues/外来/act/?act=delay&id=1",
    "/queues/外来/bulk/?act=delete&state=ready",
    "/queues/订单/?after=%21",
    "/queues/订单/?q=" + "9" * 2_000,
    "/jobs/?after=%21",
    "/jobs/00000000000000000000000000000000/",
]


def test_a_refused_address_is_all_chinese(chinese_admin: Desk) -> None:
    left = {address: english(chinese_admin.open(address).html) for address in ADDRESSES}
    assert not any(left.values()), left


@pytest.mark.parametrize(
    "error",
    [
        errors.StoreUnreachable("The cluster is busy or recovering ({reason}).", reason="1009"),
        errors.StoreFull("The disk under the store {path} is full; nothing was written. Make room on it.", path="/1"),
        errors.StoreUnreachable("{path}: {words}", path="/1", words=errors.Words("The cluster file is not there.")),
        errors.QueueNotFound("订", ("订单", "邮件", "文字")),
        errors.NotForAttached("外来", "its items are ready or gone, not {state}.", state=errors.Words("dead")),
        errors.DepthChanged(
            "{queue} holds {depth:,} {state} items now, not the {seen:,} you confirmed: nothing was begun.",
            7,
            queue="订单",
            depth=7_000,
            state=errors.Words("delayed"),
            seen=1,
        ),
    ],
)
def test_errors_are_all_chinese(error: Any) -> None:
    before = str(error)
    with translation.override("zh-hans"):
        assert not english(explain(error).text)
    with translation.override("en"):
        assert explain(error).text == before


def test_a_name_is_never_read_as_a_template_and_is_made_visible() -> None:
    error = errors.QueuePaused("{queue} is paused: {reason}", queue="{reason}", reason="{0}\u202e%(x)s")
    with translation.override("zh-hans"):
        assert said(error) == "“{reason}”已暂停：{0}⟨202E⟩%(x)s"
