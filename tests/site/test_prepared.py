"""Tables that are prepared for sites of tests."""

from pathlib import Path

import pytest

from tests.prepared import prepare


def test_what_is_prepared_lies_where_pytest_removes_it(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    prepare(tmp_path / "data")
    assert (tmp_path / "data" / "site.sqlite3").is_file()
    assert list(tmp_path_factory.getbasetemp().glob("pqadmin-prepared-*"))
