"""Commands on stores, one after the other in a process that has none of the site's models."""

import json
import os
import sys
from pathlib import Path

from pqadmin.commands.help import GROUPS
from queues import Store
from tests.commands.conftest import ROOT
from tests.programs import run_to_end

#: Runs one command after the other, as many processes would, and prints how those ended that failed.
ONE_AFTER_THE_OTHER = """
import json, sys
from pqadmin.cli import main
for words in json.load(sys.stdin):
    try:
        main(["pqadmin", *words])
    except SystemExit as ended:
        if ended.code:
            print("FAILED", words, ended.code, file=sys.stderr)
assert "django.contrib.auth.models" not in sys.modules
"""
#: Commands that are another test's: with a server, a terminal, a handler or for as long as one waits; or with models.
ELSEWHERE = {"login", "logout", "completion", "work", "top", "queues", "tail", "load"}
SITE = {"serve", "create_user", "reset_password", "create_token", "tokens", "revoke_token"}


def test_every_command_on_a_store_works_without_models(url: str, store: Store, tmp_path: Path) -> None:
    jobs, mail = store.create_queue("jobs"), store.create_queue("mail")
    acts = store.actions("ada")
    items = [item.id for item in jobs.push_many([(b"%d" % n, n) for n in range(20)])]
    leases = [jobs.lease() for _ in range(4)]
    delayed = mail.push(b"later", 1, delay=3600)
    acts.configure("mail", max_attempts=1)
    dead = mail.push(b"dies", 1)
    mail.release(mail.lease(), reason="failed")
    undone = acts.delete_items("jobs", [items[5]])
    file, backup = str(tmp_path / "items.ndjson"), str(tmp_path / "backup")
    tokens = [lease.token for lease in leases]
    asked = [
        ["depth", "jobs", "mail", "--all"],
        ["peek", "jobs"],
        ["show", "jobs", items[6]],
        ["push", "jobs", "v", "--priority", "1"],
        ["pop", "jobs"],
        ["lease", "jobs"],
        ["export_items", "jobs", file],
        ["import_items", "jobs", file, "--quiet"],
        ["ack", "jobs", tokens[0]],
        ["extend", "jobs", tokens[1]],
        ["release", "jobs", tokens[2]],
        ["sweep"],
        ["edit_item", "jobs", items[7], "edited"],
        ["reprioritize", "jobs", items[7], "--priority", "5"],
        ["reschedule", "mail", delayed.id, "--delay", "1h"],
        ["promote", "mail", delayed.id],
        ["retry_dead", "mail", dead.id],
        ["release_items", "jobs", leases[3].item.id],
        ["move", "jobs", "mail", "--ids", items[8]],
        ["delete_items", "jobs", items[9]],
        ["undo", undone.trash_id],
        ["jobs"],
        ["create_queue", "made"],
        ["configure", "made", "--max-depth", "5"],
        ["targets", "made", "--depth", "5"],
        ["pause", "made", "--reason", "repair"],
        ["resume", "made"],
        ["rename_queue", "made", "renamed"],
        ["purge", "mail", "--confirm", "mail"],
        ["delete_queue", "renamed", "--confirm", "renamed"],
        ["doctor"],
        ["backup", backup],
        ["restore_backup", backup, "--store", f"lmdb:{tmp_path / 'restored'}"],
        ["copy_store", f"lmdb:{tmp_path / 'restored'}", f"lmdb:{tmp_path / 'copy'}", "--quiet"],
        ["attach", "others", "--prefix", "others/"],
        ["detach", "others"],
    ]
    assert {words[0] for words in asked} | ELSEWHERE | SITE == {name for names in GROUPS.values() for name in names}
    done = run_to_end(
        [sys.executable, "-c", ONE_AFTER_THE_OTHER],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT), "PQADMIN_STORE": url, "PQADMIN_DATA": str(tmp_path / "data")},
        input=json.dumps(asked),
    )
    assert (done.returncode, "FAILED" in done.stderr) == (0, False), done.stderr
