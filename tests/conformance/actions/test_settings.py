"""Settings of a queue: changed by acts, told to the audit, kept through everything that happens to a queue."""

from datetime import timedelta

import pytest

from queues import Actions, Queue, Store
from queues.errors import BadSetting, NotForAttached, QueueClosed, QueueFull, SettingsChanged, ValueTooLarge
from queues.model import records
from queues.model.config import Config

EVERYTHING = {
    "note": "Paid orders only.\nAsk finance before purging.",
    "runbook": "https://wiki.example/runbooks/orders?a=1#stalled",
    "redact": ("password", "*token*"),
    "preview": ("customer.id", "lines.0.sku"),
    "max_attempts": None,
    "closed": True,
    "max_depth": 10,
    "max_value": 100,
}
DEFAULTS = {
    "note": "",
    "runbook": "",
    "redact": (),
    "preview": (),
    "max_attempts": 5,
    "closed": False,
    "max_depth": None,
    "max_value": None,
}


def settings(store: Store, name: str) -> dict[str, object]:
    config = store.queue(name).config
    return {key: getattr(config, key) for key in EVERYTHING}


def test_a_queue_begins_with_defaults_and_its_record_says_nothing_of_them(store: Store, jobs: Queue) -> None:
    assert settings(store, "jobs") == DEFAULTS
    record = jobs.config.encode()
    for name in ("note", "runbook", "redact", "preview", "max_attempts", "max_depth", "max_value"):
        assert name.encode() not in record
    assert Config.decode(record).encode() == record


def test_settings_change_with_one_audit_record_of_what_they_were(store: Store) -> None:
    ann = store.actions("ann", via="web")
    ann.create_queue("jobs")
    ann.configure("jobs", note="first", max_attempts=3)
    ann.configure("jobs", reason="new wiki", note="second", max_attempts=3, redact=["pin"])
    (entry, *_) = store.audit.entries(queue="jobs").entries
    assert (entry.verb, entry.actor, entry.reason, entry.count) == ("configure", "ann", "new wiki", 0)
    assert (entry.before, entry.after) == (
        {"note": "first", "redact": []},
        {"note": "second", "redact": ["pin"]},
    )
    ann.configure("jobs", note="second", redact=("pin",))
    assert len(store.audit.entries(queue="jobs").entries) == 3  # changing nothing is no act


def test_settings_outlive_renaming_deleting_and_purging(store: Store, ann: Actions) -> None:
    ann.create_queue("jobs")
    ann.configure("jobs", **EVERYTHING)
    assert settings(store, "jobs") == EVERYTHING
    ann.rename_queue("jobs", "tasks")
    trash_id = ann.delete_queue("tasks", confirm="tasks")
    ann.undo(trash_id)
    ann.purge("tasks", confirm="tasks")
    ann.pause("tasks", reason="r")
    assert settings(store, "tasks") == EVERYTHING
    status = store.queue("tasks").status()
    assert (status.note, status.runbook, status.redact) == tuple(EVERYTHING[k] for k in ("note", "runbook", "redact"))


def test_what_a_later_build_keeps_in_a_config_outlives_what_this_one_does(store: Store) -> None:
    jobs, ann = store.create_queue("jobs"), store.actions("ann")
    key, later = store.context.keyspace.configs.key(jobs.id), {"labels": {"team": ["a", "b"]}, "quota": 7}
    header = jobs.config.header() | later
    store.transact(lambda tr: tr.set(key, records.encode(header)))
    store.queue("jobs").configure(max_attempts=7)
    ann.pause("jobs", reason="a test")
    ann.rename_queue("jobs", "mail")
    ann.undo(ann.delete_queue("mail", confirm="mail"))
    now = records.decode(store.read(lambda tr: tr.get(key).wait()) or b"")[0]
    assert {name: now[name] for name in later} == later
    assert (now["max_attempts"], now["name"], now["pause"]["reason"]) == (7, "mail", "a test")


def test_the_second_of_two_operators_is_told_what_changed(store: Store) -> None:
    ann, bob = store.actions("ann"), store.actions("bob")
    ann.create_queue("jobs")
    seen = {"note": "", "max_attempts": 5}
    ann.configure("jobs", expect=seen, note="mine", max_attempts=5)
    with pytest.raises(SettingsChanged, match="note") as told:
        bob.configure("jobs", expect=seen, note="his", max_attempts=9)
    assert told.value.changed == {"note": ("", "mine")}
    assert settings(store, "jobs") == DEFAULTS | {"note": "mine"}
    bob.configure("jobs", expect=seen | {"note": "mine"}, max_attempts=9)
    assert settings(store, "jobs") == DEFAULTS | {"note": "mine", "max_attempts": 9}


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("note", "x" * 1_001, "1,000 characters"),
        ("note", "a\x00b", "U\\+0000"),
        ("note", "\ud800", "no text"),
        ("note", 5, "text"),
        ("runbook", "javascript:alert(1)", "http"),
        ("runbook", "//wiki/x", "http"),
        ("runbook", "https://", "host"),
        ("runbook", "https://[", "host"),
        ("runbook", "https://wiki:port/", "host"),
        ("runbook", "https://ann:secret@wiki/", "password"),
        ("runbook", "https://wiki/a b", "spaces"),
        ("runbook", "https://wiki/\u202e", "not seen"),
        ("runbook", "https://wiki/" + "x" * 500, "500 characters"),
        ("redact", "password", "list"),
        ("redact", ["x" * 65], "64 characters"),
        ("redact", ["a\u200b"], "cannot be seen"),
        ("redact", [f"k{n}" for n in range(33)], "32 redaction rules"),
        ("preview", "customer.id", "list"),
        ("preview", ["a..b"], "customer.id"),
        ("preview", ["a\u202e"], "customer.id"),
        ("preview", ["x" * 101], "100 characters"),
        ("preview", [f"k{n}" for n in range(6)], "5 preview fields"),
        ("max_attempts", 0, "1 to"),
        ("max_attempts", True, "1 to"),
        ("closed", 1, "True or False"),
        ("max_depth", 0, "1 to"),
        ("max_depth", 1.5, "1 to"),
        ("max_value", 90_001, "90,000"),
        ("color", "red", "no setting"),
    ],
)
def test_what_can_be_no_setting_is_refused_and_changes_nothing(
    store: Store, name: str, value: object, why: str
) -> None:
    store.create_queue("jobs")
    with pytest.raises(BadSetting, match=why):
        store.actions("ann").configure("jobs", **({"note": "fine"} | {name: value}))
    assert settings(store, "jobs") == DEFAULTS
    assert store.audit.entries(queue="jobs").entries == ()


def test_settings_are_kept_in_one_form(store: Store) -> None:
    store.create_queue("jobs").configure(
        note="  a\r\nb \n", runbook=" https://wiki/ ", redact=["Pin", " pin ", "", "*.token"]
    )
    found = settings(store, "jobs")
    assert (found["note"], found["runbook"], found["redact"]) == ("a\nb", "https://wiki/", ("Pin", "*.token"))


def test_a_closed_queue_takes_nothing_in_until_it_is_opened(ann: Actions) -> None:
    jobs, other = ann.create_queue("jobs"), ann.create_queue("other")
    item = jobs.push(b"x", priority=1)
    elsewhere = other.push(b"y", priority=1)
    ann.configure("jobs", closed=True)
    for push in (
        lambda: jobs.push(b"x", priority=1),
        lambda: jobs.push(b"x", priority=1, delay=timedelta(hours=1)),
        lambda: ann.move_items("other", [elsewhere.id], "jobs"),
    ):
        with pytest.raises(QueueClosed, match="jobs"):
            push()
    popped = ann.pop("jobs")
    assert popped.item.id == item.id
    ann.undo(popped.trash_id)  # what was taken by hand always comes back
    ann.configure("jobs", closed=False)
    jobs.push(b"z", priority=2)
    assert jobs.depth() == 2


def test_a_limit_of_items_counts_ready_and_delayed_ones(ann: Actions) -> None:
    jobs = ann.create_queue("jobs")
    ann.configure("jobs", max_depth=3)
    jobs.push(b"a", priority=1)
    jobs.push(b"b", priority=1, delay=timedelta(hours=1))
    with pytest.raises(QueueFull, match="holds 2 items.*at most 3"):
        jobs.push_many([(b"c", 1), (b"d", 1)])
    jobs.push(b"c", priority=1)
    with pytest.raises(QueueFull):
        jobs.push(b"d", priority=1, delay=timedelta(hours=1))
    popped = ann.pop("jobs")
    jobs.push(b"d", priority=1)
    ann.undo(popped.trash_id)  # even beyond the limit
    assert jobs.depth() == 3
    mail = ann.create_queue("mail", kind="fifo")
    ann.configure("mail", max_depth=1)
    mail.enqueue(b"a")
    with pytest.raises(QueueFull):
        mail.enqueue(b"b")


def test_a_limit_of_size_holds_for_pushes(jobs: Queue) -> None:
    jobs.configure(max_value=4)
    jobs.push(b"four", priority=1)
    with pytest.raises(ValueTooLarge, match="at most 4 bytes; this one has 5"):
        jobs.push_many([(b"a", 1), (b"fiver", 1)])
    assert jobs.depth() == 1


def test_pushes_of_a_limited_queue_conflict_with_nothing(store: Store, jobs: Queue) -> None:
    """The limit is looked at without a read conflict: two pushes that overlap both commit the first time."""
    jobs.configure(max_depth=10)
    reads = []

    def push(tr) -> None:
        jobs.push(b"x", priority=1, tr=tr)
        reads.append(tr.reads)

    store.transact(push)
    assert len(reads) == 1
    assert reads[0] <= 6


def test_an_attached_queue_has_no_setting_that_other_programs_would_ignore(store: Store, ann: Actions) -> None:
    ann.attach("theirs", prefix=b"\x15theirs")
    ann.configure("theirs", note="of the billing team", redact=["pin"], max_attempts=5, closed=False)
    assert store.queue("theirs").status().note == "of the billing team"
    for change in ({"closed": True}, {"max_attempts": 1}, {"max_depth": 5}, {"max_value": 5}):
        with pytest.raises(NotForAttached, match="other programs"):
            ann.configure("theirs", note="else", **change)
    assert store.queue("theirs").status().note == "of the billing team"
