"""Range reads from both sides, alike on every engine."""

import random

import pytest

from queues.kv.port import KeyValueStore, Transaction

PAIRS = [(b"a", b"1"), (b"b", b"2"), (b"c", b"3"), (b"d\xfe", b"4")]


@pytest.fixture
def filled(kv: KeyValueStore) -> KeyValueStore:
    kv.transact(lambda tr: [tr.set(key, value) for key, value in PAIRS])
    return kv


@pytest.mark.parametrize("verb", ["read", "transact"])
@pytest.mark.parametrize(
    ("begin", "end", "limit", "expected"),
    [
        (b"", b"\xff", 10, PAIRS),
        (b"", b"\xff\xff", 10, PAIRS),
        (b"a", b"d", 10, PAIRS[:3]),
        (b"aa", b"c", 10, PAIRS[1:2]),
        (b"b", b"c\0", 10, PAIRS[1:3]),
        (b"e", b"f", 10, []),
        (b"", b"a", 10, []),
        (b"c", b"b", 10, []),
        (b"b", b"b", 10, []),
        (b"\xff", b"\xff\xff", 10, []),
    ],
)
def test_a_range_is_read_alike_from_both_sides(
    filled: KeyValueStore, verb: str, begin: bytes, end: bytes, limit: int, expected: list[tuple[bytes, bytes]]
) -> None:
    run = getattr(filled, verb)
    assert run(lambda tr: tr.get_range(begin, end, limit=limit).wait()) == expected
    assert run(lambda tr: tr.get_range(begin, end, limit=limit, reverse=True).wait()) == expected[::-1]
    first, last = (expected[0][0], expected[-1][0]) if expected else (None, None)
    assert run(lambda tr: tr.get_key(begin, end).wait()) == first
    assert run(lambda tr: tr.get_key(begin, end, reverse=True).wait()) == last
    assert run(lambda tr: tr.get_range(begin, end, limit=1).wait()) == expected[:1]
    assert run(lambda tr: tr.get_range(begin, end, limit=1, reverse=True).wait()) == expected[-1:]


def test_an_empty_store_has_no_first_and_no_last_key(kv: KeyValueStore) -> None:
    assert kv.read(lambda tr: tr.get_key(b"", b"\xff").wait()) is None
    assert kv.read(lambda tr: tr.get_key(b"", b"\xff", reverse=True).wait()) is None
    assert kv.read(lambda tr: tr.get_range(b"", b"\xff", limit=1, reverse=True).wait()) == []


@pytest.mark.parametrize("limit", [0, -1])
def test_a_range_read_has_a_limit(kv: KeyValueStore, limit: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        kv.read(lambda tr: tr.get_range(b"a", b"b", limit=limit))


def test_own_writes_show_in_ranges(filled: KeyValueStore) -> None:
    def work(tr: Transaction) -> None:
        tr.clear(b"a")
        tr.set(b"bb", b"new")
        tr.set(b"c", b"changed")
        tr.add(b"z", 1)
        expected = [(b"b", b"2"), (b"bb", b"new"), (b"c", b"changed"), (b"d\xfe", b"4"), (b"z", b"\x01" + b"\0" * 7)]
        for view in (tr, tr.snapshot):
            assert view.get_range(b"", b"\xff", limit=10).wait() == expected
            assert view.get_range(b"", b"\xff", limit=10, reverse=True).wait() == expected[::-1]
            assert view.get_key(b"", b"\xff").wait() == b"b"
            assert view.get_key(b"", b"\xff", reverse=True).wait() == b"z"
            assert view.get_range(b"b", b"c", limit=2).wait() == expected[:2]

    filled.transact(work)


def test_reads_issued_together_are_all_answered(filled: KeyValueStore) -> None:
    def work(tr: Transaction) -> list[object]:
        issued = [tr.get(b"a"), tr.get_key(b"b", b"c"), tr.get_range(b"c", b"d", limit=1)]
        return [result.wait() for result in issued]

    assert filled.transact(work) == [b"1", b"b", [(b"c", b"3")]]


@pytest.mark.parametrize("seed", range(20))
def test_random_programs_equal_a_plain_dict(kv: KeyValueStore, seed: int) -> None:
    chance = random.Random(seed)
    keys = [b"k%02d" % n for n in range(30)]
    model: dict[bytes, bytes] = {}

    def window() -> tuple[bytes, bytes]:
        return chance.choice(keys), chance.choice(keys)

    for _ in range(12):
        fails = chance.random() < 0.3
        trial = dict(model)
        steps = [
            (
                chance.choice(("set", "clear", "clear_range", "add", "get", "range")),
                chance.choice(keys),
                window(),
                chance.randrange(1, 6),
                chance.random() < 0.5,
            )
            for _ in range(chance.randrange(1, 15))
        ]

        def run(
            tr: Transaction, steps: list = steps, start: dict = model, trial: dict = trial, fails: bool = fails
        ) -> None:
            trial.clear()
            trial.update(start)
            for verb, key, (begin, end), n, reverse in steps:
                if verb == "set":
                    tr.set(key, b"%d" % n)
                    trial[key] = b"%d" % n
                elif verb == "clear":
                    tr.clear(key)
                    trial.pop(key, None)
                elif verb == "clear_range":
                    tr.clear_range(begin, end)
                    for gone in [k for k in trial if begin <= k < end]:
                        del trial[gone]
                elif verb == "add":
                    deltas = {key: n} if reverse else {key: n, begin: 2, end: 1}
                    tr.add(key, n) if reverse else tr.add_all(deltas)
                    for added, delta in deltas.items():
                        total = int.from_bytes(trial.get(added, b"")[:8], "little") + delta
                        trial[added] = total.to_bytes(8, "little")
                elif verb == "get":
                    assert tr.get(key).wait() == trial.get(key)
                else:
                    expected = sorted((k, v) for k, v in trial.items() if begin <= k < end)
                    if reverse:
                        expected.reverse()
                    assert tr.get_range(begin, end, limit=n, reverse=reverse).wait() == expected[:n]
            if fails:
                raise LookupError

        if fails:
            with pytest.raises(LookupError):
                kv.transact(run)
        else:
            kv.transact(run)
            model = trial
        assert dict(kv.read(lambda tr: tr.get_range(b"", b"\xff", limit=100).wait())) == model
