"""Stores of other releases: refused by name, with the commands that help, and never changed."""

import os
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from pqadmin.live import monitor as monitors
from pqadmin.store import close_store
from queues import Store, open_store
from queues.catalog.store_record import FORMAT, StoreRecord
from queues.errors import CopyUnfinished, NewerFormat, NotAStore, OlderFormat
from queues.keys.keyspace import Keyspace
from queues.kv import open_kv
from queues.model import records
from queues.tools.backup import back_up
from tests.commands.conftest import Run, Shop
from tests.health import probe

KEYSPACE = Keyspace(("pq",))
#: What release 0.1 wrote into a new store.
OF_0_1 = b'\x01\x00\x004{"format":3,"id":"8f14e45fceea167a5a36dedd4bea2543"}'


def write(store: Store, record: bytes) -> bytes:
    """Give the store the record of another release."""
    store.transact(lambda tr: tr.set(KEYSPACE.store, record))
    return record


def content(store: Store) -> list[tuple[bytes, bytes]]:
    return store.read(lambda tr: tr.get_range(*KEYSPACE.range, limit=1_000).wait())


def test_a_store_of_0_1_is_refused_with_the_commands_that_help(run: Run, shop: Shop) -> None:
    shop.store.create_queue("jobs").push(b"x", priority=1)
    write(shop.store, OF_0_1)
    before = content(shop.store)
    with pytest.raises(
        OlderFormat, match="pqadmin 0.1.*export_items QUEUE.*import_items QUEUE FILE.*Nothing was changed"
    ):
        open_store(shop.url)
    for command in ("queues", "doctor", "sweep"):
        answer = run(command)
        assert (answer.code, answer.out, answer.error.count("\n")) == (1, "", 0)
        assert "export_items" in answer.error
    assert content(shop.store) == before


def test_a_folder_of_0_1_is_refused_by_the_format_of_its_store(tmp_path: Path) -> None:
    url = f"lmdb:{tmp_path}/store"
    with open_store(url) as store:
        write(store, OF_0_1)
    os.truncate(tmp_path / "store" / "turns", 1_024)  # as 0.1 made it
    with pytest.raises(OlderFormat):
        open_store(url)


def test_a_store_of_0_1_is_not_backed_up(tmp_path: Path, url: str) -> None:
    with open_store(url) as store:
        write(store, OF_0_1)
    with pytest.raises(OlderFormat):
        back_up(url, str(tmp_path / "backup"))
    assert not (tmp_path / "backup").exists()


def test_a_newer_store_is_refused_and_untouched(run: Run, shop: Shop) -> None:
    for record in (StoreRecord(format=FORMAT + 1, id=shop.store.id).encode(), b"\x03" + OF_0_1):
        write(shop.store, record)
        before = content(shop.store)
        with pytest.raises(NewerFormat, match="newer pqadmin"):
            open_store(shop.url)
        assert run("queues").code == 1
        assert content(shop.store) == before


def test_release_0_1_takes_the_record_for_one_of_a_newer_release(shop: Shop) -> None:
    record = shop.store.read(lambda tr: tr.get(KEYSPACE.store).wait())
    with pytest.raises(NewerFormat):  # records have the form that they had in 0.1
        records.decode(record)


def test_a_backup_of_no_store_is_refused(tmp_path: Path) -> None:
    with open_store(f"lmdb:{tmp_path / 'other'}", root=("other",)):
        pass
    with pytest.raises(NotAStore, match="holds no pqadmin store"):
        back_up(f"lmdb:{tmp_path / 'other'}", str(tmp_path / "backup"))


def test_the_target_of_an_unfinished_copy_is_no_store_yet(tmp_path: Path) -> None:
    url = f"lmdb:{tmp_path / 'copy'}"
    kv = open_kv(url)
    mark = records.encode({"from": "lmdb:var/store"})
    kv.transact(lambda tr: tr.set(KEYSPACE.copy_mark, mark))
    kv.close()
    with pytest.raises(CopyUnfinished, match="copy_store lmdb:var/store lmdb:"):
        open_store(url)


@pytest.mark.django_db
def test_the_site_says_so_on_every_page(
    client: Client, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    close_store()
    monkeypatch.setattr(monitors, "_monitor", None)
    settings.PQADMIN_STORE = f"lmdb:{tmp_path / 'store'}"
    with open_store(settings.PQADMIN_STORE) as store:
        write(store, OF_0_1)
    client.force_login(User.objects.create_superuser("ann"))
    try:
        page = client.get("/")
        assert (page.status_code, page.headers["Retry-After"]) == (503, "5")
        assert "pqadmin export_items" in page.content.decode()
        assert probe().status == 503
    finally:
        close_store()
