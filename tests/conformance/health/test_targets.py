"""Targets in the store: set by queue and by pattern, judged by in every process, kept through everything."""

from pathlib import Path

import pytest

from queues import Queue, Store, open_store
from queues.errors import BadGlob, BadName, BadSetting, NotForAttached, PatternNotFound, QueueNotFound, SettingsChanged
from queues.health import Code, Level, Origin, Target, Verdict
from queues.history.recorder import Recorder
from queues.model.limits import Limits
from queues.tools.copy import copy_store
from tests.conftest import Clock


def waiting(store: Store, name: str = "orders:eu", n: int = 9) -> int:
    """Return a queue with ready items, from which something was taken."""
    queue = store.create_queue(name)
    queue.push_many([(b"x", 1)] * (n + 1))
    queue.pop_min()
    return queue.id


def pass_time(recorder: Recorder, clock: Clock, seconds: int) -> None:
    """Let a recorder look every ten seconds."""
    for _ in range(seconds // 10):
        clock.advance(10)
        recorder.look()
    recorder.flush()


def two_looks(recorder: Recorder, clock: Clock) -> None:
    """Let a running recorder look twice, a second apart."""
    for _ in range(2):
        clock.advance(1)
        recorder.look()


def verdict(store: Store, queue_id: int) -> Verdict:
    health = store.snapshot([queue_id]).queues[queue_id].health
    return health.verdict


def test_limits_are_inherited_each_by_itself(store: Store) -> None:
    store.create_queue("orders:eu")
    store.targets.set("orders:*", oldest=600, dead=5)
    store.targets.set("*:eu", dead=3)
    store.queue("orders:eu").configure(target_depth=100, target_dead=0)
    assert store.targets.of("orders:eu") == {
        "depth": Target(100, Origin.QUEUE),
        "oldest": Target(600, Origin.PATTERN, "orders:*"),
        "wait": Target(0, Origin.DEFAULT),
        "dead": Target(0, Origin.QUEUE),
        "no_consumer": Target(60, Origin.DEFAULT),
        "growing": Target(120, Origin.DEFAULT),
    }
    store.queue("orders:eu").configure(target_dead=None)
    assert store.targets.of("orders:eu")["dead"] == Target(5, Origin.PATTERN, "orders:*")
    store.targets.remove("orders:*")
    assert store.targets.of("orders:eu")["dead"] == Target(3, Origin.PATTERN, "*:eu")
    assert list(store.targets.patterns()) == ["*:eu"]
    with pytest.raises(QueueNotFound):
        store.targets.of("nowhere")


def test_a_pattern_has_one_spelling_and_what_is_wrong_changes_nothing(store: Store) -> None:
    assert store.targets.set(" a**b ", depth=5) == "a*b"
    change = store.snapshot(()).directory_change
    for glob, error in (("", BadGlob), ("a b", BadName), ("*" + "a*" * 16, BadGlob), ("x" * 201, BadGlob)):
        with pytest.raises(error):
            store.targets.set(glob, depth=1)
        with pytest.raises(error):
            store.targets.remove(glob)
    with pytest.raises(BadSetting):
        store.targets.set("a*b", depth=-1)
    with pytest.raises(BadSetting):
        store.targets.set("a*b")
    with pytest.raises(PatternNotFound):
        store.targets.remove("b*")
    assert store.targets.patterns() == {"a*b": Limits(depth=5)}
    assert store.snapshot(()).directory_change == change


def test_a_target_beyond_what_may_be_pushed_contradicts_it(store: Store, jobs: Queue) -> None:
    jobs.configure(max_depth=100)
    with pytest.raises(BadSetting, match="never reached"):
        jobs.configure(target_depth=101)
    jobs.configure(target_depth=100)
    with pytest.raises(BadSetting, match="never reached"):
        store.actions("ana").configure("jobs", max_depth=50)
    assert (store.queue("jobs").config.max_depth, store.queue("jobs").config.target_depth) == (100, 100)
    store.attach("theirs", prefix=b"\x15theirs")
    with pytest.raises(NotForAttached):
        store.queue("theirs").configure(target_depth=1)


def test_a_target_reaches_a_recorder_that_runs_within_two_looks_and_both_ways(store: Store, clock: Clock) -> None:
    recorder, queue_id = store.recorder(count=clock), waiting(store)
    store.targets.set("orders:*", no_consumer=0)
    pass_time(recorder, clock, 600)
    assert verdict(store, queue_id).level is Level.OK
    store.actions("ana").configure("orders:eu", target_depth=9)
    two_looks(recorder, clock)
    assert [(reason.code, reason.limit) for reason in verdict(store, queue_id).reasons] == [(Code.DEEP, 9)]
    store.actions("ana").configure("orders:eu", target_depth=10)
    two_looks(recorder, clock)
    assert verdict(store, queue_id).level is Level.OK
    store.targets.set("orders:*", oldest=300, no_consumer=0)
    two_looks(recorder, clock)
    (old,) = verdict(store, queue_id).reasons
    item = store.snapshot([queue_id]).queues[queue_id].oldest
    assert (old.code, old.limit, old.since) == (Code.OLD, 300, item.timestamp() + 300)
    store.targets.remove("orders:*")
    two_looks(recorder, clock)
    assert verdict(store, queue_id).codes == (Code.NO_CONSUMER,)


def test_a_new_recorder_goes_by_the_store_and_not_by_its_own_defaults(store: Store, clock: Clock) -> None:
    queue_id = waiting(store)
    store.actions("site").set_default_targets(no_consumer=0, oldest=300)
    pass_time(store.recorder(count=clock), clock, 360)
    pass_time(store.recorder(count=clock), clock, 10)
    assert verdict(store, queue_id).codes == (Code.OLD,)
    store.actions("site").set_default_targets(no_consumer=0)
    two_looks(recorder := store.recorder(count=clock), clock)
    two_looks(recorder, clock)
    assert verdict(store, queue_id).level is Level.OK


def test_a_queue_that_is_never_used_is_quiet_for_an_hour_whatever_its_targets(store: Store, clock: Clock) -> None:
    jobs = store.create_queue("jobs")
    store.targets.set("*", no_consumer=5, oldest=5)
    jobs.push_many([(b"x", 1)] * 10)
    recorder = store.recorder(count=clock)
    pass_time(recorder, clock, 3_500)
    health = store.snapshot([jobs.id]).queues[jobs.id].health
    assert health is None or health.verdict.level is Level.OK
    pass_time(recorder, clock, 200)
    assert verdict(store, jobs.id).level is Level.CRITICAL


def test_acts_are_in_the_audit_with_before_and_after(store: Store) -> None:
    ana = store.actions("ana")
    ana.set_targets("orders:*", expect={}, oldest=600, reason="agreed")
    ana.set_targets("orders:*", oldest=600)  # nothing differs
    ana.set_targets("orders:*", expect={"oldest": 600}, dead=0)
    with pytest.raises(BadGlob, match="already"):
        ana.set_targets("orders:*", expect={}, depth=1)
    with pytest.raises(SettingsChanged) as changed:
        ana.set_targets("orders:*", expect={"oldest": 600}, depth=1)
    assert changed.value.changed == {"oldest": (600, None), "dead": (None, 0)}
    with pytest.raises(SettingsChanged):
        ana.remove_targets("orders:*", expect={"oldest": 600})
    ana.remove_targets("orders:*", expect={"dead": 0})
    with pytest.raises(PatternNotFound):
        ana.set_targets("orders:*", expect={"dead": 0}, depth=1)
    told = [(each.verb, each.reason, each.before, each.after) for each in store.audit.entries().entries]
    assert told == [
        ("remove_targets", "", {"pattern": "orders:*", "dead": 0}, None),
        ("set_targets", "", {"oldest": 600}, {"pattern": "orders:*", "dead": 0}),
        ("set_targets", "agreed", None, {"pattern": "orders:*", "oldest": 600}),
    ]


def test_the_defaults_are_written_only_when_they_differ(store: Store) -> None:
    site = store.actions("site")
    site.set_default_targets(oldest=900, no_consumer=60)
    assert not store.audit.entries().entries
    site.set_default_targets(oldest=1_800)
    site.set_default_targets(oldest=1_800, dead=1)
    site.set_default_targets(oldest=900)
    assert [each.after for each in store.audit.entries().entries] == [{"oldest": 900}, {"oldest": 1_800}]
    assert store.targets.rules().targets("jobs").oldest == 900


def test_what_cannot_be_read_is_told_and_the_rest_counts(store: Store, clock: Clock) -> None:
    keyspace = store.context.keyspace
    store.targets.set("a*", dead=7)
    for glob, record in (("a:*", b""), ("b*", b"\x09later"), ("c*", b'\x01\x00\x00\x0c{"depth":"x"}')):
        key = keyspace.target_patterns.key(glob)
        store.transact(lambda tr, key=key, record=record: tr.set(key, record))
    store.transact(lambda tr: tr.set(keyspace.target_defaults, b"\x01\x00"))
    rules = store.targets.rules()
    assert rules.patterns == {"a*": Limits(dead=7)}
    assert [glob for glob, _ in rules.unreadable] == ["", "a:*", "b*", "c*"]
    assert rules.targets("a:1").dead == 7
    queue_id, other_id = waiting(store, "b1"), waiting(store, "d1")
    store.transact(lambda tr: tr.clear(keyspace.target_defaults))
    pass_time(store.recorder(count=clock), clock, 20)
    told = verdict(store, queue_id)
    assert (told.level, told.codes) == (Level.UNKNOWN, (Code.TARGETS,))
    assert verdict(store, other_id).level is Level.OK
    store.transact(lambda tr: tr.set(keyspace.target_defaults, b"\x01\x00"))
    store.actions("ana").remove_targets("b*")
    store.actions("ana").set_targets("c*", expect={}, depth=3)
    assert [glob for glob, _ in store.targets.rules().unreadable] == ["", "a:*"]


def test_fields_of_a_later_release_are_kept(store: Store) -> None:
    keyspace = store.context.keyspace
    key = keyspace.target_patterns.key("a*")
    record = b'{"dead":2,"p50":3}'
    store.transact(lambda tr: tr.set(key, b"\x01" + len(record).to_bytes(3, "big") + record))
    store.targets.set("a*", depth=4)
    assert b'"p50":3' in (store.read(lambda tr: tr.get(key).wait()) or b"")
    assert store.targets.patterns() == {"a*": Limits(depth=4)}


def test_there_are_at_most_200_patterns(store: Store) -> None:
    for n in range(200):
        store.targets.set(f"q{n}:*", depth=1)
    with pytest.raises(BadGlob, match="200"):
        store.targets.set("one:more:*", depth=1)
    store.targets.set("q7:*", depth=2)
    store.targets.remove("q8:*")
    store.targets.set("one:more:*", depth=1)
    assert len(store.targets.patterns()) == 200


def test_a_copy_and_the_trash_keep_targets(store: Store, tmp_path: Path) -> None:
    store.create_queue("jobs").configure(target_depth=5)
    store.targets.set("j*", dead=9)
    store.targets.set_defaults(oldest=77)
    trash_id = store.delete_queue("jobs")
    store.restore(trash_id)
    expected = store.targets.of("jobs")
    assert (expected["depth"].limit, expected["dead"].limit, expected["oldest"].limit) == (5, 9, 77)
    if store.url == "memory:":  # another process cannot open it
        return
    copy_store(store.url, f"lmdb:{tmp_path / 'copy'}")
    with open_store(f"lmdb:{tmp_path / 'copy'}") as copy:
        assert copy.targets.of("jobs") == expected
