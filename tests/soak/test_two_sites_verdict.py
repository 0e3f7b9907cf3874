"""The rules of the soak of two sites: each finds what it is there for, and nothing in what is well."""

import json

import pytest

from tests.soak import two_sites_verdict as verdict
from tests.soak.two_sites_verdict import Attempt, Life

LEASED = {"quick": 6.0, "held": 2.0}


def attempt(began: float, ended: float | None = None, *, process: str = "a", name: str = "1", **more) -> Attempt:
    return Attempt(
        **{"item": f"id of {name}", "kind": "quick", "attempt": 1, "not_before": None, **more},
        name=name,
        process=process,
        began=began,
        ended=ended,
    )


def overlaps(*attempts: Attempt, **ends: Life) -> verdict.Overlaps:
    lives = {one.process: Life(process=one.process) for one in attempts}
    return verdict.overlaps(attempts, lives | ends, LEASED)


def test_one_attempt_behind_the_other_is_well() -> None:
    found = overlaps(attempt(0, 1), attempt(1.5, 2, process="b"), attempt(3, process="b"))
    assert (found.after_an_end, found.beside_the_living, found.wrong) == (0, {}, [])


def test_a_lease_that_was_taken_from_a_living_process_is_found() -> None:
    found = overlaps(attempt(0, 9), attempt(0.5, 1, process="b"))
    assert (found.beside_the_living, len(found.wrong)) == ({"quick": 1}, 1)
    late = overlaps(attempt(0, 9), attempt(6.1, 7, process="b"))
    assert (late.beside_the_living, len(late.wrong)) == ({"quick": 1}, 1)
    held = overlaps(attempt(0, 9, kind="held"), attempt(6.1, 7, process="b", kind="held"))
    assert (held.beside_the_living, held.wrong) == ({"held": 1}, [])


@pytest.mark.parametrize(("began", "wrong"), [(3.5, 1), (4.5, 0)])
def test_the_lease_of_a_killed_process_is_not_over_at_once(began: float, wrong: int) -> None:
    found = overlaps(attempt(0), attempt(began, process="b"), a=Life(process="a", ended=2.0))
    assert (found.after_an_end, len(found.wrong)) == (1, wrong)


def test_what_a_stopped_process_gives_back_may_begin_at_once() -> None:
    found = overlaps(attempt(0, 9), attempt(1.1, 2, process="b"), a=Life(process="a", told=1.0, ended=9.5))
    assert (found.after_an_end, found.wrong) == (1, [])


def test_a_handler_that_held_the_interpreter_explains_a_late_first_line() -> None:
    held, killed = attempt(0, 4, name="2", kind="held"), Life(process="a", ended=5.0)
    assert overlaps(held, attempt(4.1), attempt(6.2, 7, process="b"), a=killed).wrong == []
    assert len(overlaps(attempt(4.1), attempt(6.2, 7, process="b"), a=killed).wrong) == 1


def test_ids_that_are_equal_and_values_that_were_pushed_twice_are_found() -> None:
    well = attempt(0, 1), attempt(2, 3), attempt(0, 1, name="2")
    assert verdict.wrong_ids(well) == []
    assert len(verdict.wrong_ids([*well, attempt(0, 1, name="3", item="id of 2")])) == 1
    assert len(verdict.wrong_ids([*well, attempt(0, 1, name="2", item="another")])) == 1


def test_work_that_began_too_early_or_on_what_was_completed_is_found() -> None:
    done = attempt(0, 1, done=True)
    assert verdict.begun_after_done([attempt(0.5, process="b"), done]) == []
    assert verdict.begun_after_done([done, attempt(1.1, process="b")]) == ["1 by b"]
    assert verdict.begun_early([attempt(3, not_before=2.5), attempt(2.45, not_before=2.5)]) == []
    assert len(verdict.begun_early([attempt(1, not_before=2.5)])) == 1


def test_effects_are_compared_one_by_one() -> None:
    found = verdict.judge_effects(["1", "2", "3"], {"1": 1, "2": 2, "9": 1})
    assert (found.lost, found.twice, found.from_nowhere) == (["3"], ["2"], ["9"])


def test_memory_that_grows_is_told_from_memory_that_does_not() -> None:
    def samples(per_minute: int, minutes: int = 20) -> list[tuple[float, int]]:
        warm = [(float(at), 50_000_000 + at * 400_000) for at in range(0, 120, 10)]
        return warm + [(120.0 + at, 100_000_000 + at * per_minute // 60) for at in range(0, minutes * 60, 10)]

    flat, growing, short = (verdict.memory(samples(*how)) for how in ((0,), (2_000_000,), (2_000_000, 3)))
    assert (flat.judged, flat.grows) == (True, False)
    assert (growing.judged, growing.grows) == (True, True)
    assert round(growing.slope / 1e5) == 20
    assert not short.judged
    assert verdict.memory(samples(0)[:13]) is None


def test_a_log_whose_last_line_was_cut_off_is_read(tmp_path) -> None:
    log = tmp_path / "worker-1-1.attempts"
    begin = {"what": "begin", "at": 1.0, "process": "worker-1-1", "item": "x", "attempt": 1}
    begin |= {"name": "1", "kind": "quick", "not_before": None}
    done = {"what": "done", "at": 2.0, "item": "x", "attempt": 1}
    lines = [json.dumps(line).encode() for line in (begin, done, begin | {"item": "y"}, done | {"item": "y"})]
    log.write_bytes(b"\n".join(lines)[:-3])
    assert [(one.item, one.ended, one.done) for one in verdict.read_attempts([log])] == [
        ("x", 2.0, True),
        ("y", None, False),
    ]
