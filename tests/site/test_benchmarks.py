"""`python -m benchmarks shapes` and `http`: they run, and say what misses its bar."""

import re
import socket
import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest

from benchmarks import http, shapes
from benchmarks.harness.callers import Run
from benchmarks.harness.http_caller import Answered
from benchmarks.harness.rounds import Measured, Shape
from benchmarks.peers.peer import Missing
from tests.programs import run_to_end

ROOT = Path(__file__).resolve().parents[2]
#: Ports that a start of the broker asks for.
PORTS = 4
#: Has Erlang's threads not spin while they wait.
UNHURRIED = {"ERL_AFLAGS": "+S 1:1 +sbwt none +sbwtdcpu none +sbwtdio none"}


def test_the_smallest_shapes_are_measured_and_told() -> None:
    asked = ["1x1", "coroutines-1x256", "lease-4x4"]
    command = [sys.executable, "-m", "benchmarks", "shapes", "--shapes", *asked, "--peers", "embedded"]
    done = run_to_end([*command, "--flush-ms", "0", "--rounds", "1", "--seconds", "0.1"], cwd=ROOT, timeout=600)
    assert done.returncode == 0, done.stderr  # alone it misses no bar
    for name in asked:
        assert re.search(rf"^\| {name} \| [1-9]", done.stdout, re.MULTILINE), done.stdout


@pytest.mark.parametrize(("rate", "met"), [(130, True), (120, False)])
def test_a_shape_below_its_bar_is_a_miss(rate: float, met: bool) -> None:
    shape = Shape(4, 4)  # 1.25 times each peer
    runs = {("embedded", shape): [Run([rate], [])], ("postgres", shape): [Run([60, 40], [])]}
    assert [figure.met for figure in shapes.judged(measured(runs), "")] == [met]


def test_the_ratio_is_the_median_of_those_of_the_same_round() -> None:
    shape = Shape(1, 1)
    ours, theirs = [(900, 100, 300), (1_000, 50, 200)]
    runs = {("embedded", shape): [Run([n], []) for n in ours], ("redis_aof", shape): [Run([n], []) for n in theirs]}
    assert [figure.value for figure in shapes.judged(measured(runs), "")] == ["1.50×"]


@pytest.mark.parametrize(("milliseconds", "met"), [(6.9, True), (7.1, False)])
def test_slow_pushes_of_lone_callers_are_a_miss(milliseconds: float, met: bool) -> None:
    pushes = [0.001] * 90 + [milliseconds / 1_000] * 10
    figures = shapes.judged(measured({("embedded", Shape(4, 1)): [Run([1], pushes)]}, slowed=2.0), "")
    assert [figure.met for figure in figures] == [met]


def measured(runs: dict[tuple[str, Shape], list[Run]], slowed: float = 0.1) -> Measured:
    return Measured(facts=(), runs=runs, flush=0.1, slowed=slowed)


def test_pairs_batches_and_streams_over_http_are_measured_and_told() -> None:
    command = [sys.executable, "-m", "benchmarks", "http", "--clients", "2", "--rounds", "1", "--seconds", "0.2"]
    done = subprocess.run([*command, "--items", "2000"], cwd=ROOT, capture_output=True, text=True)
    assert re.search(r"^\| 2 \| [1-9]", done.stdout, re.MULTILINE), done.stderr
    for figure in ("batches of 100", "2,000 items imported", "2,000 items exported"):
        assert figure in done.stdout, done.stdout
    for server in (http.RABBIT, http.MINIMAL):
        assert re.search(rf"{server} is left out: .*(install|root)|against {server}", done.stdout), done.stdout


@pytest.mark.parametrize(("rate", "met"), [(310, True), (290, False)])
def test_a_server_that_comes_too_close_to_ours_is_a_miss(rate: float, met: bool) -> None:
    runs = {(http.OURS, 16): [Answered(rate, [], [])], (http.RABBIT, 16): [Answered(100, [], [])]}
    assert [figure.met for figure in http.judged(runs)] == [met]


@pytest.mark.slow
def test_a_broker_of_which_a_port_was_taken_is_started_with_other_ports(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its own port at the first start, and that of its management at the second."""
    pytest.importorskip("pika", reason="RabbitMQ's client is not installed")
    from benchmarks.peers import rabbitmq

    real, asked = rabbitmq.free_port, count()
    in_use = {0, PORTS + 1}
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        taken = other.getsockname()[1]
        monkeypatch.setattr(rabbitmq, "free_port", lambda: taken if next(asked) in in_use else real())
        try:
            with rabbitmq.running(tmp_path, UNHURRIED, management=True) as peer:
                assert taken not in (int(peer.door.address), peer.management)
                assert sorted(path.name for path in tmp_path.glob("start-*")) == ["start-1", "start-2", "start-3"]
        except Missing as missing:
            pytest.skip(str(missing))
