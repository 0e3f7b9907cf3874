"""find: one item in whatever state, with its attempts."""

from tests.commands.conftest import Run, Shop


def test_an_item_is_shown_with_its_attempts(run: Run, shop: Shop) -> None:
    jobs = shop.store.create_queue("jobs")
    jobs.configure(max_attempts=2)
    item = jobs.push(b"value", priority=5)
    for error in ("KeyError: 'a'", "ValueError: \x1b[31mno"):
        jobs.release(jobs.lease(worker="render-7"), reason=error, traceback=f"Traceback\n  line\n{error}")
    shown = run("find", "jobs", item.id).out
    assert shown.index("Attempt 1 of render-7: released, ") < shown.index("Attempt 2 of render-7: released, dead, ")
    assert "  KeyError: 'a'\n" in shown
    assert "\x1b" not in shown
    told = run("find", "jobs", item.id, "--json").json["item"]
    assert (told["id"], told["state"], told["attempts"]) == (item.id, "dead", 2)
    assert [(one["number"], one["died"], one["error"]) for one in told["attempt_log"]] == [
        (1, False, "KeyError: 'a'"),
        (2, True, "ValueError: \x1b[31mno"),
    ]
    assert told["attempt_log"][0]["traceback"] == "Traceback\n  line\nKeyError: 'a'"


def test_an_item_that_is_not_there_is_an_error(run: Run, shop: Shop) -> None:
    shop.store.create_queue("jobs")
    for item_id in ("0" * 40, "nothing"):
        missing = run("find", "jobs", item_id)
        assert (missing.code, missing.out) == (1, "")
        assert f"jobs has no item {item_id}." in missing.error
