"""The words for scripts: a file that browsers keep, for as long as it is the same."""

import json
import re

from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils.translation import override

from pqadmin.accounts.roles import Role, grant
from pqadmin.live.words import words
from pqadmin.live.words_view import address


def said(script: str) -> dict[str, str]:
    """Return what a words file sets."""
    found = re.fullmatch(r"globalThis\.pqadminWords = (\{.*\});\n", script)
    told: dict[str, str] = json.loads(found[1])
    return told


def test_each_language_has_a_file_of_its_own_that_is_kept_for_a_year(db: None) -> None:
    for language in ("en", "zh-hans"):
        answer = Client().get(address(language), headers={"Accept-Language": "de"})
        with override(language):
            assert said(answer.content.decode()) == words()
        assert answer["Content-Type"] == "text/javascript; charset=utf-8"
        assert "immutable" in answer["Cache-Control"]
        assert "max-age=31536000" in answer["Cache-Control"]
    assert address("en") != address("zh-hans")


def test_one_kept_file_serves_every_login_and_every_choice(db: None) -> None:
    """What a browser keeps is not kept for another cookie or language where the answer says that it varies by them."""
    user = User.objects.create_user("vera")
    grant(user, Role.VIEWER)
    client = Client()
    client.force_login(user)
    client.cookies["pqadmin_theme"] = "dark"
    with CaptureQueriesContext(connection) as queries:
        answer = client.get(address("en"), headers={"Accept-Language": "zh-hans", "Accept-Encoding": "gzip"})
    assert answer["Vary"] == "Accept-Encoding"
    assert set(answer["Cache-Control"].split(", ")) == {"public", "max-age=31536000", "immutable"}
    assert answer["Content-Language"] == "en"
    assert not answer.cookies
    assert len(queries) == 0, "neither a session nor a user is looked up"


def test_the_mark_of_another_release_gets_the_words_of_now_and_keeps_none(db: None) -> None:
    answer = Client().get("/words/en/0123456789ab.js")
    with override("en"):
        assert said(answer.content.decode()) == words()
    assert "no-store" in answer["Cache-Control"]
    assert Client().get("/words/xx/0123456789ab.js").status_code == 404
