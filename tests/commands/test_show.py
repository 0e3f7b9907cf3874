"""show: one item in whatever state, with its attempts."""

from pqadmin.display.format import number
from queues import Queue
from tests.commands.conftest import Run, Shop


def test_an_item_is_shown_with_its_attempts(run: Run, jobs: Queue) -> None:
    jobs.configure(max_attempts=2)
    item = jobs.push(b"value", priority=5)
    for error in ("KeyError: 'a'", "ValueError: \x1b[31mno"):
        jobs.release(jobs.lease(worker="render-7"), reason=error, traceback=f"Traceback\n  line\n{error}")
    shown = run("show", "jobs", item.id).out
    assert shown.index("Attempt 1 of render-7: released, ") < shown.index("Attempt 2 of render-7: released, dead, ")
    assert "  KeyError: 'a'\n" in shown
    assert "\x1b" not in shown
    told = run("show", "jobs", item.id, "--json").json["item"]
    assert (told["id"], told["state"], told["attempts"]) == (item.id, "dead", 2)
    assert [(one["number"], one["died"], one["error"]) for one in told["attempt_log"]] == [
        (1, False, "KeyError: 'a'"),
        (2, True, "ValueError: \x1b[31mno"),
    ]
    assert told["attempt_log"][0]["traceback"] == "Traceback\n  line\nKeyError: 'a'"


def test_an_item_that_is_not_there_is_an_error(run: Run, shop: Shop) -> None:
    shop.store.create_queue("jobs")
    for item_id in ("0" * 40, "nothing"):
        missing = run("show", "jobs", item_id)
        assert (missing.code, missing.out) == (1, "")
        assert f"jobs has no item {item_id}." in missing.error


def test_an_item_is_shown_with_its_value_and_what_people_did(run: Run, jobs: Queue) -> None:
    item = jobs.push(b"first\n\x1b[2Jsecond", priority=5, delay=3_600)
    run("promote", "jobs", item.id, "--reason", "customer\nwaits")
    lines = run("show", "jobs", item.id).out.splitlines()
    facts = dict(line.split(maxsplit=1) for line in lines[: lines.index("")])
    assert (facts["Item:"], facts["State:"], facts["Priority:"], facts["Size:"]) == (item.id, "ready", "5", "16 B")
    assert facts["Pushed:"].endswith(" s ago")
    assert lines[lines.index("") + 1] == "first"
    assert lines[lines.index("") + 2].endswith("[2Jsecond")
    assert lines[-1].endswith((" (cli) promoted: customer ↵ waits", " (api) promoted: customer ↵ waits"))
    assert "\x1b" not in "".join(lines)


def test_values_are_shown_by_what_they_are(run: Run, shop: Shop) -> None:
    packed = shop.store.create_queue("packed", codec="msgpack")
    order = packed.push({"customer": {"id": 2**63}}, priority=1)
    assert '  "customer": {\n    "id": 9223372036854775808\n' in run("show", "packed", order.id).out
    jobs = shop.store.create_queue("jobs")
    binary = jobs.push(bytes(range(256)) * 3, priority=1)
    shown = run("show", "jobs", binary.id).out
    assert "00 01 02 03" in shown
    assert "… 256 more bytes; --raw writes all of them" in shown
    assert "leave out --json" in run("show", "jobs", binary.id, "--raw", "--json").error


def test_the_value_of_a_finished_item_says_that_it_is_cut(run: Run, shop: Shop) -> None:
    jobs = shop.store.create_queue("jobs", codec="json")
    jobs.configure(keep_finished=3_600)
    long, short = jobs.push({"text": "é" * 500}, priority=1), jobs.push({"text": "a"}, priority=2)
    jobs.pop_many(2)
    assert run("show", "jobs", long.id, "--json").json["item"]["truncated"] is True
    lines = run("show", "jobs", long.id).out.splitlines()
    # Of a remote store without the part of a character at the end.
    assert lines[-1] in [f"… the first {n} of {number(long.size)} bytes are kept" for n in (255, 256)]
    told = run("show", "jobs", short.id, "--json").json["item"]
    assert (told["truncated"], told["value_json"]) == (False, {"text": "a"})
    assert "are kept" not in run("show", "jobs", short.id).out
