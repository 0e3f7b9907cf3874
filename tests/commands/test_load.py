"""The parts of a load: its schedule and its plan."""

import json
import re
import sys
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pqadmin.load import plan as planning
from pqadmin.load.pace import Burst, Pace
from pqadmin.load.plan import plans
from queues import Store
from queues.model.names import check_name
from queues.model.priority import normalize
from tests.programs import run_to_end

BURSTS = st.none() | st.builds(
    lambda period, part, factor: Burst(period=period, length=period * part, factor=factor),
    st.floats(1, 100),
    st.floats(0.05, 0.95),
    st.floats(0.1, 50),
)


def test_a_process_of_a_load_writes_its_log_as_the_site_does(store: Store, url: str) -> None:
    store.create_queue("jobs")
    look = (
        "import logging, multiprocessing, sys\n"
        "from pqadmin.load.pace import Pace\n"
        "from pqadmin.load.process import Job, main\n"
        "stop = multiprocessing.Event()\n"
        "stop.set()\n"
        "job = Job(role='worker', number=0, store_url=sys.argv[1], plans=[], pace=Pace(rate=1, burst=None), seed=1)\n"
        "counts, began = multiprocessing.RawArray('q', 5), multiprocessing.RawValue('d', 0.0)\n"
        "main(job, counts, multiprocessing.Barrier(1), began, stop)\n"
        "logging.getLogger('queues.kv').warning('slow')\n"
    )
    done = run_to_end([sys.executable, "-c", look, url])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z WARNING queues\.kv: slow\n", done.stderr)


@given(rate=st.floats(0.1, 10_000), burst=BURSTS, count=st.integers(1, 100_000))
def test_an_operation_is_due_at_its_moment_and_not_before(rate: float, burst: Burst | None, count: int) -> None:
    pace = Pace(rate=rate, burst=burst)
    moment = pace.moment(count)
    assert pace.due(moment * (1 + 1e-9)) >= count
    assert pace.due(moment * (1 - 1e-9)) <= count


def test_a_burst_multiplies_the_end_of_each_period() -> None:
    pace = Pace(rate=10, burst=Burst.parse("30:3:10"))
    assert [pace.due(seconds) for seconds in (0, 27, 28, 30, 57, 60)] == [0, 270, 370, 570, 840, 1140]


@pytest.mark.parametrize("text", ["", "30", "3:30:10", "30:0:10", "30:3:0", "30:3:-1", "a:b:c", "30:3:10:1"])
def test_a_burst_that_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        Burst.parse(text)


@pytest.mark.parametrize("count", [1, 24, 100, 1_000])
def test_plans_are_many_unlike_and_the_same_for_a_seed(count: int) -> None:
    made = plans(count, prefix="demo:", seed=7)
    assert len({plan.name for plan in made}) == count
    assert made == plans(count, prefix="demo:", seed=7)
    assert all(check_name(plan.name) == plan.name and plan.name.startswith("demo:") for plan in made)
    if count >= 24:
        assert {plan.kind for plan in made} == {"priority", "fifo"}
        assert {plan.priority_type for plan in made} == {"int", "float", "str"}


@given(seed=st.integers(0, 1_000))
def test_priorities_fit_and_values_are_json(seed: int) -> None:
    random = Random(seed)
    for plan in plans(24, prefix="", seed=seed):
        drawn = planning.priority(plan.mix, random)
        if plan.kind == "fifo":
            assert drawn is None
        else:
            assert normalize(drawn, plan.priority_type) == drawn
        value = planning.value(plan, random)
        assert len(value) < 20_000
        assert isinstance(json.loads(value), dict)
