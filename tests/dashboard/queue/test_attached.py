"""Queues that other programs write: shown among ours and marked, used by the acts that there are, refused the rest."""

import re
from collections.abc import Callable
from urllib.parse import quote

import fdb.tuple
import pytest

from pqadmin.accounts.roles import Role
from pqadmin.dashboard.queue import purge
from queues import Queue, Store
from tests.dashboard.conftest import Desk
from tests.dashboard.screen import Screen
from tests.others import PREFIX, Others


@pytest.fixture
def others(store: Store) -> Others:
    """A program that pushed three items."""
    program = Others(store)
    program.push((5, b"five"), (1, b"one"), (9, fdb.tuple.pack(("dispatch", 71, 4.5))))
    return program


@pytest.fixture
def legacy(store: Store, others: Others) -> Queue:
    """Its items as a queue, counted once."""
    queue = store.attach("legacy", prefix=PREFIX)
    queue.depth()
    return queue


def test_the_overview_marks_it_and_says_when_it_was_counted(operator: Desk, store: Store, legacy: Queue) -> None:
    store.create_queue("ours").push(b"x", priority=1)
    page = operator.open("/")
    row = page.rows["legacy"]
    assert row["mark"] == "attached"
    assert row["verdict"] == "unknown · attached, traffic not seen"
    assert 'title="The items are written by other programs; prefix (&#x27;legacy&#x27;, &#x27;jobs&#x27;)"' in page.html
    assert row["ready"] == "≈ 3"
    assert re.fullmatch(r"counted \d+(\.\d)? (s|min) ago", row["counted"])
    assert (row["rate-in"], row["rate-out"], row["oldest"]) == ("–", "–", "–")
    assert "what other programs push and take is not seen" in page.html
    assert row["trend"] == "unknown (external writers)"
    assert re.search(r"in 2 queues 1 attached, counted [\d.]+ s ago", page.text)
    assert "counted" not in page.rows["ours"]
    assert list(operator.open("/?q=reason:attached").rows) == ["legacy"]
    assert list(operator.open("/?q=depth>2").rows) == ["legacy"]
    assert "2 queues · 4 ready · 1 attached, as last counted" in operator.open("/?group=group")


def test_before_the_first_count_it_says_counting_and_never_zero(
    operator: Desk, store: Store, others: Others, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store.counts, "want", lambda ids: None)
    store.attach("legacy", prefix=PREFIX)
    page = operator.open("/")
    assert (page.rows["legacy"]["ready"], page.rows["legacy"]["counted"]) == ("…", "counting…")
    assert "1 attached, 1 not counted yet" in page
    assert list(operator.open("/?q=depth<10").rows) == []
    queue = operator.open("/queues/legacy/")
    assert "counting…" in queue
    assert "(…) · legacy" in queue.title
    assert "are being counted" in operator.open("/queues/legacy/purge/")


def test_the_queue_page_says_whose_items_these_are(operator: Desk, legacy: Queue) -> None:
    page = operator.open("/queues/legacy/")
    assert "other programs write these items as well" in page
    assert "('legacy', 'jobs')" in page
    assert r"\x02legacy\x00\x02jobs\x00" in page
    assert "≈ 3" in page
    assert "what other programs do is not seen" in page
    assert "('dispatch', 71, 4.5)" in page
    for act in ("pause", "resume", "delete"):
        assert not page.has_form(f"/{act}/")
        assert f"/queues/legacy/{act}/" not in page.links
    assert {"/queues/legacy/purge/", "/queues/legacy/detach/", "/queues/legacy/rename/"} <= set(page.links)


def test_items_are_listed_from_both_ends_and_from_a_priority(operator: Desk, legacy: Queue, others: Others) -> None:
    others.push(*((n, b"v%d" % n) for n in range(100, 160)))

    def values(address: str) -> list[str]:
        page = operator.open(address)
        return re.findall(r">(five|one|v\d+|\(&#x27;dispatch[^<]*)</a>", page.html)

    assert values("/queues/legacy/")[:2] == ["one", "five"]
    assert values("/queues/legacy/?end=max")[:2] == ["v159", "v158"]
    assert values("/queues/legacy/?from=120")[:2] == ["v120", "v121"]
    page = operator.open("/queues/legacy/")
    (more,) = (link for link in page.links if "after=" in link)
    assert len(values(f"/queues/legacy/{more.removesuffix('#items')}")) == 13


def test_an_item_page_says_what_is_not_known_and_why(operator: Desk, legacy: Queue, others: Others) -> None:
    last = legacy.peek_max()
    page = operator.open(f"/queues/legacy/items/{last.id}/")
    assert "Item of priority 9" in page
    assert "unknown keys of other programs do not say when" in page
    assert "('dispatch', 71, 4.5)" in page
    raw = operator.open(f"/queues/legacy/items/{last.id}/?as=hex")
    assert "64 69 73 70 61 74 63 68" in raw.text, "the raw bytes are one step away"
    assert "Count 2" in page
    assert "/queues/legacy/" in page.links
    raw = operator.client.get(f"/queues/legacy/items/{last.id}/download/")
    assert raw.content == last.value

    others.write((b"\xfe no tuple" + b"\x00" * 300, b"odd"))
    odd = legacy.peek_max()
    assert len(odd.id) > 600
    page = operator.open(f"/queues/legacy/items/{odd.id}/")
    assert "not a key of the recipe" in page
    assert "unknown the key holds none" in page
    listed = operator.open("/queues/legacy/?end=max")
    assert "not the recipe’s" in listed
    assert f"/queues/legacy/items/{odd.id}/" in listed.links
    gone = operator.open("/queues/legacy/items/key-00/")
    assert gone.status == 404


def test_push_pop_and_put_back(operator: Desk, legacy: Queue, others: Others) -> None:
    operator.send(operator.open("/queues/legacy/"), "/push/", value="ours", priority="0")
    assert others.take() == b"ours", "another program takes what was pushed here"
    page = operator.send(operator.open("/queues/legacy/pop/?end=max"), "/pop/")
    assert "Taken from the queue" in page
    assert legacy.depth() == 2
    page = operator.send(page, "/put-back/")
    assert "Put back" in page
    assert others.take(last=True) == fdb.tuple.pack(("dispatch", 71, 4.5))
    assert "popped max" in operator.open("/audit/")


def test_a_purge_states_the_count_and_wants_the_name(operator: Desk, legacy: Queue, others: Others) -> None:
    form = operator.open("/queues/legacy/purge/")
    assert "3 items are taken from other programs." in form
    page = operator.send(form, "/purge/", confirm="legac")
    assert page.status == 422
    assert others.depth() == 3

    others.push(*((7, b"newcomer") for _ in range(40)))
    page = operator.send(operator.open("/queues/legacy/purge/"), "/purge/", confirm="legacy", depth="3")
    assert "The depth has changed" in page
    assert others.depth() == 43

    page = operator.send(page, "/purge/", confirm="legacy", reason="moved away")
    assert "Purged 43 items" in page
    assert others.depth() == 0
    assert "purged" in operator.open("/trash/")
    page = operator.send(page, "/restore/")
    assert "Undone: 43 items are as they were" in page
    assert others.depth() == 43
    assert "moved away" in operator.open("/audit/?queue=legacy")


@pytest.fixture
def slow_purge(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the time for a purge run out once anything is in the trash."""
    monkeypatch.setattr(purge, "clock", lambda: 100.0 * len(store.trash.entries().entries))


@pytest.mark.usefixtures("slow_purge")
def test_a_purge_that_takes_too_long_stops_and_says_so(operator: Desk, legacy: Queue, others: Others) -> None:
    others.push(*((7, b"x") for _ in range(300)))
    legacy.depth()
    page = operator.send(operator.open("/queues/legacy/purge/"), "/purge/", confirm="legacy")
    assert "Purge again to go on" in page
    assert 0 < others.depth() < 303


def test_a_purge_that_fails_halfway_says_what_it_took(
    operator: Desk, store: Store, legacy: Queue, others: Others, monkeypatch: pytest.MonkeyPatch
) -> None:
    others.push(*((7, b"x") for _ in range(300)))
    legacy.depth()

    def detached_meanwhile() -> float:
        if store.trash.entries().entries and "legacy" in store.directory():
            store.detach("legacy")
            store.attach("moved", prefix=PREFIX)
        return 0.0

    monkeypatch.setattr(purge, "clock", detached_meanwhile)
    form = operator.open("/queues/legacy/purge/")
    page = operator.send(form, "/purge/", confirm="legacy")
    assert page.path == "/trash/"
    assert "Purged 100 items. They are in the trash. Then it failed:" in page
    assert "othing was" not in page.text
    assert others.depth() == 203


def test_acts_that_would_need_other_programs_are_refused_in_clear_words(
    operator: Desk, legacy: Queue, others: Others
) -> None:
    for act, words in (("pause", "it cannot be paused"), ("delete", "detach it instead")):
        page = operator.open(f"/queues/legacy/{act}/")
        assert page.status == 409
        assert "“legacy” is an attached queue, which other programs write as well" in page
        assert words in page
        assert not page.has_form(f"/{act}/")
    hidden = operator.open("/queues/legacy/rename/").form("/rename/")[1]
    sent = {"queue_id": hidden["queue_id"], "confirm": "legacy", "depth": "3", "reason": "by hand"}
    for act in ("pause", "resume", "delete"):
        page = operator.post(f"/queues/legacy/{act}/", sent | {"form_number": _number(operator, legacy, act)})
        assert "is an attached queue" in page, (act, page.text)
    assert others.depth() == 3
    assert "legacy" in operator.open("/").rows


def _number(desk: Desk, queue: Queue, act: str) -> str:
    """Return the number of a form for an act, as the site would have made it for this person."""
    from pqadmin.pages import form_idempotency

    class Request:
        user = desk.client.get("/").wsgi_request.user

    return form_idempotency.number(Request(), f"{act}:{queue.id}")


def test_detaching_leaves_the_items(operator: Desk, legacy: Queue, others: Others) -> None:
    operator.send(operator.open("/queues/legacy/pop/"), "/pop/")
    page = operator.send(operator.open("/queues/legacy/detach/"), "/detach/", reason="done with it")
    assert "Its items stay where they are" in page
    assert "legacy" not in page.rows
    assert others.depth() == 2
    trash = operator.open("/trash/")
    refused = operator.send(trash, "/restore/")
    assert "The queue is not there" in refused
    assert "detached the queue" in operator.open("/audit/")


def test_the_acts_of_attached_queues_are_refused_for_our_own(operator: Desk, store: Store) -> None:
    store.create_queue("jobs").push(b"x", priority=1)
    page = operator.open("/queues/jobs/detach/")
    assert page.status == 404
    assert "nothing attached" in page


@pytest.fixture
def admin(desk: Callable[..., Desk]) -> Desk:
    """An admin."""
    return desk(Role.ADMIN, "eve")


def look(desk: Desk, name: str, prefix: str, **typed: str) -> Screen:
    """Fill in the form to attach a queue and look at what lies there."""
    return desk.send(desk.open("/attach/"), "/attach/#main", name=name, prefix_text=prefix, step="look", **typed)


def test_attaching_takes_two_steps_and_shows_what_lies_there_first(admin: Desk, store: Store, others: Others) -> None:
    assert "/attach/" in admin.open("/").links
    seen = look(admin, "legacy", '("legacy", "jobs")')
    assert "This is what lies there" in seen
    assert r"\x02legacy\x00\x02jobs\x00" in seen
    assert "First item (1, 1," in seen
    assert "('dispatch', 71, 4.5)" in seen
    assert store.queues() == [], "looking attaches nothing"
    assert admin.send(seen, "/attach/").path == "/queues/legacy/"
    queue = store.queue("legacy")
    assert queue.attached
    assert queue.config.prefix == PREFIX
    assert "attached the queue" in admin.open("/audit/")


@pytest.mark.parametrize(
    ("prefix", "words"),
    [
        ("", "Say under which prefix"),
        ('("legacy"', "This is not understood"),
        ('("legacy")', "ends with a comma"),
        ("(open('x'),)", "A prefix holds text"),
        ("0x1", "pairs of hexadecimal digits"),
        ("legacy\\", "a backslash itself is"),
        ("café", "printable ASCII"),
        (r"\xff\x02", "belongs to the store's own system"),
        (r"\xfe\x15\x01", "directory layer"),
        ("x" * 300, "at most 256 bytes"),
        ('("pq",)', "overlaps the keys of this store"),
    ],
)
def test_a_prefix_that_cannot_be_is_refused_at_its_field(admin: Desk, store: Store, prefix: str, words: str) -> None:
    page = look(admin, "legacy", prefix)
    assert page.status == 422
    assert words in page.text
    assert 'id="attach-prefix_text_error"' in page.html
    assert store.queues() == []


def test_a_preview_warns_of_nothing_and_of_other_keys(admin: Desk, others: Others) -> None:
    empty = look(admin, "e", "nothing")
    assert "Nothing lies under this prefix now" in empty
    wrong = look(admin, "f", "0x" + PREFIX.hex(), kind="fifo")
    assert "not one of this kind’s recipe" in wrong


def test_a_prefix_that_overlaps_another_names_it(admin: Desk, legacy: Queue) -> None:
    page = look(admin, "part", '("legacy",)')
    assert page.status == 422
    assert "“legacy”, which is attached already" in page


def test_operators_are_not_offered_to_attach(operator: Desk, legacy: Queue) -> None:
    page = operator.open("/")
    assert "/attach/" not in page.links
    assert operator.open("/attach/").status == 403


def test_viewers_see_it_and_are_offered_nothing(viewer: Desk, legacy: Queue) -> None:
    page = viewer.open("/queues/legacy/")
    assert page.status == 200
    assert not any(link.endswith(("/purge/", "/detach/", "/attach/", "/pop/?end=min")) for link in page.links)
    assert "/attach/" not in viewer.open("/").links


def test_a_fifo_queue_of_other_programs_is_shown_popped_and_pushed_to(operator: Desk, store: Store) -> None:
    others = Others(store, b"\x01outbox\x00")
    others.enqueue(b"first", b"second")
    store.attach("outbox", prefix=others.prefix, kind="fifo").depth()
    page = operator.open("/queues/outbox/")
    assert "FIFO, by the queue’s recipe" in page
    assert operator.open("/").rows["outbox"]["verdict"] == "unknown · attached, traffic not seen · fifo"
    page = operator.send(operator.open("/queues/outbox/pop/"), "/pop/")
    assert "first" in page
    operator.send(operator.open("/queues/outbox/"), "/push/", value="third")
    assert [others.take(), others.take()] == [b"second", b"third"]


HOSTILE = [
    (fdb.tuple.pack(("<script>alert(1)</script>\u202e", 1, b"r")), b"<script>alert(1)</script>"),
    (fdb.tuple.pack((b"\x00\xff<b>", 2, b"r")), fdb.tuple.pack(("<script>alert(1)</script>\u202e\x07", b"\x00" * 300))),
    (fdb.tuple.pack((None,)), b"\x1b[31m"),
    (fdb.tuple.pack(((1, ("deep", (None,))), 3, b"r")), fdb.tuple.pack((("x" * 40_000,),))),
    (b"\x05" * 200, b"nested without end"),
    (b"\x01never ended", b"\x05" * 5_000),
    (b"\xfe" + b"\xff" * 5, b"x" * 99_000),
]


@pytest.mark.parametrize(("key", "value"), HOSTILE)
def test_every_page_of_a_hostile_key_and_value(admin: Desk, store: Store, key: bytes, value: bytes) -> None:
    others = Others(store, b"\x02<script>alert(1)</script>\xe2\x80\xae\x00")
    others.write((key, value))
    queue = store.attach("legacy", prefix=others.prefix)
    (item,) = queue.items().items
    base = "/queues/legacy/"
    item_page = f"{base}items/{quote(item.id)}/"
    for path in ("/", base, f"{base}?end=max", f"{base}pop/", f"{base}purge/", f"{base}detach/", item_page):
        page = admin.open(path)
        assert page.status == 200
        _is_clean(page.html)
    _is_clean(admin.open(f"{base}act/?act=delete&id={quote(item.id)}").html)
    _is_clean(admin.open(f"{base}act/?act=move&id={quote(item.id)}").html)
    _is_clean(look(admin, "other", r"\x02<script>").html)
    taken = admin.send(admin.open(f"{base}pop/"), "/pop/")
    assert "Taken from the queue" in taken
    for path in ("/trash/", "/audit/", "/audit/?queue=legacy"):
        _is_clean(admin.open(path).html)


def _is_clean(html: str) -> None:
    assert "<script>alert" not in html
    assert not {"\u202e", "\x00", "\x1b", "\x07"} & set(html)
