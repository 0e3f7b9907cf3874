"""Two sites on one embedded store: the death of one leaves the other at work."""

import signal
from collections.abc import Callable
from pathlib import Path
from urllib.request import urlopen

import pytest

from queues import open_store
from tests.server.conftest import PATIENCE, Site

pytestmark = pytest.mark.crash


def test_a_killed_site_leaves_the_other_ready_and_every_item_there(serve: Callable[..., Site], tmp_path: Path) -> None:
    store = f"lmdb:{tmp_path / 'store'}"
    first = serve(PQADMIN_STORE=store, PQADMIN_DATA=str(tmp_path))
    assert first.get("/readyz")[0] == 200
    (tmp_path / "second").mkdir()
    second = serve(PQADMIN_STORE=store, PQADMIN_DATA=str(tmp_path / "second"))
    assert second.get("/readyz")[0] == 200
    with open_store(store) as opened:
        jobs = opened.create_queue("jobs")
        jobs.push_many([(b"%d" % n, n) for n in range(100)])
        first.signal(signal.SIGKILL)
        assert first.exit_code() == -signal.SIGKILL
        assert [item.priority for item in jobs.pop_many(50)] == list(range(50))
        with urlopen(f"{second.address}/readyz", timeout=PATIENCE) as answer:
            assert answer.status == 200
        assert jobs.depth() == 50
    again = serve(PQADMIN_STORE=store, PQADMIN_DATA=str(tmp_path))
    assert again.get("/readyz")[0] == 200
    with open_store(store) as opened:
        assert opened.doctor.examine().findings == ()
