"""What a role and grants by glob come to."""

import re
import time

import pytest
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from pqadmin.accounts.rights import Right, Role
from pqadmin.accounts.scope import ALL, NOTHING, Scope, scope_of, scopes_of
from queues.admin import check_glob
from queues.errors import BadGlob, BadName


@pytest.mark.parametrize(
    ("glob", "matching", "others"),
    [
        ("orders:*", ["orders:", "orders:eu", "orders:eu:fast"], ["orders", "Orders:eu", "x:orders:eu"]),
        ("*:eu", [":eu", "orders:eu", "a:eu:eu"], ["orders:eu:", "orders:EU"]),
        ("o?ders", ["orders", "oXders", "oéders"], ["oders", "orrders"]),
        ("a*b*c", ["abc", "a-b-b-c", "abcbc"], ["acb", "ab", "abcd"]),
        ("a.b", ["a.b"], ["aXb"]),
        ("*", ["", "anything"], []),
        ("*a*a*", ["aa", "banana"], ["a", "bab"]),
        ("jobs", ["jobs"], ["jobs2", "job"]),
    ],
)
def test_globs_match_the_whole_name_letter_by_letter(glob: str, matching: list[str], others: list[str]) -> None:
    assert Scope.of_globs([glob]).of_those([*matching, *others]) == matching


@given(st.text("ab*?", max_size=8), st.text("abc", max_size=8))
def test_globs_mean_what_the_plainest_pattern_means(glob: str, name: str) -> None:
    plain = "".join({"*": ".*", "?": "."}.get(c, c) for c in glob)
    assert Scope.of_globs([glob]).sees(name) is (re.fullmatch(plain, name, re.DOTALL) is not None)


def test_no_glob_takes_long() -> None:
    began = time.thread_time()
    assert not Scope.of_globs(["*" + "a*" * 15 + "b"]).sees("a" * 200)
    assert time.thread_time() - began < 1  # a backtracking pattern would take years


@pytest.mark.parametrize("glob", ["", "  ", "a b", "a/b", "[ab]", "x" * 201, "*a" * 17, "a\nb"])
def test_a_glob_that_matches_no_name_is_refused(glob: str) -> None:
    with pytest.raises((BadGlob, BadName)):
        check_glob(glob)


def test_a_glob_has_one_spelling() -> None:
    assert check_glob(" orders:**e\u0301* ") == "orders:*\u00e9*"


def test_a_grant_raises_the_role_where_it_matches_and_lowers_it_nowhere() -> None:
    scope = Scope.of(Role.VIEWER, [("orders:*", Role.OPERATOR), ("mail", Role.VIEWER)])
    assert scope.everything
    assert scope.can(Right.ACT, "orders:eu")
    assert not scope.can(Right.ACT, "mail")
    assert scope.sees("mail")
    assert scope.role_on("orders:eu") is Role.OPERATOR
    assert scope.role_on("mail") is Role.VIEWER


def test_a_person_with_grants_alone_sees_those_queues_only() -> None:
    scope = Scope.of(Role.NONE, [("orders:*", Role.VIEWER), ("orders:eu", Role.OPERATOR)])
    assert not scope.everything
    assert scope.of_those(["a", "orders:eu", "orders:us"]) == ["orders:eu", "orders:us"]
    assert scope.can(Right.ACT, "orders:eu")
    assert not scope.can(Right.ACT, "orders:us")
    assert scope.anywhere(Right.ACT)
    assert scope.role_on("mail") is Role.NONE


def test_no_person_becomes_an_admin_by_a_glob() -> None:
    assert Scope.of(Role.NONE, [("*", Role.ADMIN)]) == NOTHING
    assert not Scope.of(Role.OPERATOR, [("*", Role.ADMIN)]).can(Right.ADMIN, "jobs")


def test_scopes_that_mean_the_same_are_one() -> None:
    one = Scope.of(Role.NONE, [("a", Role.VIEWER), ("b", Role.OPERATOR), ("a", Role.VIEWER)])
    other = Scope.of(Role.NONE, [("b", Role.OPERATOR), ("b", Role.VIEWER), ("a", Role.VIEWER)])
    assert one == other
    assert hash(one) == hash(other)
    assert Scope.of(Role.NONE, [("*", Role.VIEWER), ("a", Role.VIEWER)]) == Scope.of(Role.VIEWER)
    assert Scope.of_globs(["*"]) == Scope.of(Role.VIEWER)


def test_the_scope_of_a_user_is_read_once(granted, django_assert_num_queries) -> None:
    user = granted(Role.VIEWER, {"jobs": Role.OPERATOR})
    fresh = type(user).objects.get(pk=user.pk)
    with django_assert_num_queries(2):
        assert scope_of(fresh) == Scope.of(Role.VIEWER, [("jobs", Role.OPERATOR)])
        assert scope_of(fresh).can(Right.ACT, "jobs")


def test_scopes_of_many_cost_as_much_as_of_one(person, granted) -> None:
    from django.db import connection

    people = [granted(Role.NONE, {"jobs": Role.VIEWER}), person(Role.OPERATOR, "o"), person(Role.ADMIN, "root")]
    gone = person(Role.ADMIN, "gone")
    gone.is_active = False
    gone.save()
    with CaptureQueriesContext(connection) as asked:
        found = scopes_of([*people, gone])
    assert len(asked) == 2
    assert [found[user.pk] for user in [*people, gone]] == [
        Scope.of(Role.NONE, [("jobs", Role.VIEWER)]),
        Scope.of(Role.OPERATOR),
        ALL,
        NOTHING,
    ]


def test_a_restricted_scope_has_each_right_within_its_globs_alone() -> None:
    scope = Scope.of(Role.VIEWER, [("orders:*", Role.OPERATOR)]).restricted_to(["orders:eu*", "mail"])
    assert scope.of_those(["orders:eu:1", "orders:us", "mail", "other"]) == ["orders:eu:1", "mail"]
    assert scope.role_on("orders:eu:1") is Role.OPERATOR
    assert scope.role_on("mail") is Role.VIEWER
    assert scope.role_on("orders:us") is Role.NONE
    assert not scope.everything
    assert ALL.restricted_to(["mail"]).can(Right.ADMIN, "mail")
    assert not ALL.restricted_to(["mail"]).role.has(Right.READ)
    assert not NOTHING.restricted_to(["mail"]).anywhere(Right.READ)
    assert ALL.restricted_to(["mail", "*"]) == ALL
    assert ALL.restricted_to([]) == NOTHING
