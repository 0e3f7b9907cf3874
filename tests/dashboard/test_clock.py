"""A site on a machine whose clock is wrong: pages go by the store's clock, and say that the two differ."""

import io
import re
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command

from pqadmin import site_audit, token_lifecycle
from pqadmin.accounts.caller import Verb
from pqadmin.accounts.models import KeptAnswer, Token
from pqadmin.accounts.roles import Role, grant
from pqadmin.server import housekeeping
from pqadmin.store import close_store
from queues import RequestKey, Store, open_store
from tests.dashboard.conftest import Desk
from tests.health import probe
from tests.sites import site_store

HOUR = 3_600.0


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path) -> Iterator[Store]:
    """The site's store, which a process on another machine's clock can open too."""
    with site_store(f"lmdb:{tmp_path / 'store'}", settings, monkeypatch) as opened:
        yield opened


def differ(store: Store, ahead: float) -> None:
    """Let the store go by a machine whose clock is so many seconds ahead of the site's."""
    with open_store(store.url, wall=lambda: time.time() + ahead) as other:
        other.set_clock(by="boss")
    store.clock.calibrate()


@pytest.mark.parametrize(
    ("ahead", "says"),
    [
        (-HOUR - 30, "This site's clock is 60 min ahead of the store's."),
        (HOUR + 30, "This site's clock is 60 min behind the store's."),
    ],
)
def test_pages_say_so_to_people_that_may_act(store: Store, desk: Callable[..., Desk], ahead: float, says: str) -> None:
    operator, viewer = desk(Role.OPERATOR), desk(Role.VIEWER)
    assert "data-skew" not in operator.open("/").html
    differ(store, ahead)
    for page in ("/", "/jobs/", "/trash/"):
        shown = operator.open(page)
        assert says in shown.text
        assert "pqadmin doctor --set-clock" in shown.text
        assert "data-skew" not in viewer.open(page).html


@pytest.mark.parametrize("ahead", [-HOUR, HOUR])
def test_ages_and_countdowns_are_right_all_the_same(store: Store, desk: Callable[..., Desk], ahead: float) -> None:
    differ(store, ahead)
    jobs = store.create_queue("jobs")
    item = jobs.push(b"value", priority=1)
    page = desk().open(f"/queues/jobs/items/{item.id}/").html
    ages = re.findall(r"<time data-age[^>]*>([^<]*)</time>", page)
    assert ages
    assert all(age.endswith(" s") for age in ages), ages
    jobs.push(b"later", priority=1, delay=timedelta(seconds=300))
    page = desk(name="another").open("/queues/jobs/?state=delayed").html
    countdowns = re.findall(r"<time data-countdown[^>]*>([^<]*)</time>", page)
    assert countdowns
    assert all(re.fullmatch(r"in [45]:\d\d", left) for left in countdowns), countdowns


@pytest.mark.parametrize("ahead", [-HOUR, HOUR])
def test_a_site_that_is_skewed_is_ready_and_says_so(store: Store, db: None, ahead: float) -> None:
    assert "clock_skew_seconds" not in probe().json
    differ(store, ahead)
    answer = probe()
    assert answer.status == 200
    assert answer.json["clock_skew_seconds"] == pytest.approx(-ahead, abs=1)


@pytest.mark.parametrize("ahead", [-HOUR, HOUR])
def test_the_answer_of_a_change_of_the_site_has_the_stores_time(store: Store, db: None, ahead: float) -> None:
    differ(store, ahead)
    key = RequestKey(key="form 1", answer=lambda result: b"done")
    before = store.now()
    site_audit.keep_answer(key, None)
    first = site_audit.first_answer(key)
    assert first is not None
    assert before <= first.at <= store.now()


@pytest.fixture
def root(db: None) -> User:
    grant(user := User.objects.create_user("root"), Role.ADMIN)
    return user


def test_a_wrong_clock_of_one_machine_forgets_no_token_and_no_answer(store: Store, root: User) -> None:
    differ(store, -400 * 24 * HOUR)
    by = site_audit.Author(name="root")
    token_lifecycle.create("shop", root, verbs=[Verb.PUSH], queues=["*"], days=90, by=by, now=store.now())
    site_audit.keep_answer(RequestKey(key="form 1", answer=lambda result: b"done"), None)
    housekeeping.sweep()
    close_store()
    housekeeping.sweep()
    assert (Token.objects.count(), KeptAnswer.objects.count()) == (1, 1)


def test_commands_date_tokens_by_the_stores_clock(store: Store, root: User) -> None:
    differ(store, HOUR)
    before = store.now()
    for command in ("create_token shop --queues * --verbs push", "revoke_token shop"):
        close_store()
        call_command(*command.split(), stdout=io.StringIO())
    token = Token.objects.get()
    assert token.revoked_at is not None
    assert before <= token.created_at <= token.revoked_at
