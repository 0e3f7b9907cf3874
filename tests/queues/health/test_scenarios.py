"""The labeled scenarios of `python -m benchmarks verdicts` that tell most: each verdict is right, and in time."""

import pytest

from benchmarks.harness import deployment_scenarios, everyday_scenarios, verdict_scenarios
from benchmarks.harness.verdict_play import play
from benchmarks.harness.verdict_scenarios import Scenario

ALL = (*verdict_scenarios.scenarios(), *everyday_scenarios.scenarios(), *deployment_scenarios.scenarios())
SHORT = [scenario for scenario in ALL if scenario.short]


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SHORT, ids=[scenario.name for scenario in SHORT])
def test_an_operator_agrees_with_the_verdict(scenario: Scenario) -> None:
    assert not play(scenario).misses
