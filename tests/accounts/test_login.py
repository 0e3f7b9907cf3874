"""Logging in, out, and changing one's own password."""

import re
from collections.abc import Callable

import pytest
from django.contrib.auth.hashers import MD5PasswordHasher
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from pqadmin.accounts.roles import Role
from tests.accounts.conftest import PASSWORD

LOGIN = "/accounts/login/"


def credentials(name: str = "ann", password: str = PASSWORD, **more: str) -> dict[str, str]:
    return {"username": name, "password": password, **more}


@pytest.fixture
def ann(person) -> User:
    return person(Role.VIEWER, "ann")


@pytest.fixture
def client() -> Client:
    return Client()


def test_the_right_password_leads_to_the_overview(ann, client) -> None:
    answer = client.post(LOGIN, credentials())
    assert (answer.status_code, answer.url) == (302, "/")


def test_wrong_password_and_unknown_name_are_told_alike(ann, client) -> None:
    wrong = client.post(LOGIN, credentials(password="wrong"))
    unknown = client.post(LOGIN, credentials(name="bob"))
    assert (wrong.status_code, unknown.status_code) == (422, 422)
    assert wrong.context["form"].non_field_errors() == unknown.context["form"].non_field_errors()


def test_the_page_asked_for_is_shown_after_login(ann, client) -> None:
    asked = client.get("/queues/jobs/?end=max")
    assert (asked.status_code, asked.url) == (302, "/accounts/login/?next=/queues/jobs/%3Fend%3Dmax")
    page = client.get(asked.url)
    assert 'name="next" value="/queues/jobs/?end=max"' in page.content.decode()
    answer = client.post(LOGIN, credentials(next="/queues/jobs/?end=max"))
    assert answer.url == "/queues/jobs/?end=max"


@pytest.mark.parametrize(
    "elsewhere",
    ["https://evil.example/", "//evil.example/", "/\\evil.example", "javascript:alert(1)", "http:///evil.example"],
)
def test_login_never_leads_to_another_site(ann, client, elsewhere: str) -> None:
    assert client.post(LOGIN, credentials(next=elsewhere)).url == "/"


def test_an_act_without_login_leads_back_to_its_page_not_to_the_act(client, db) -> None:
    answer = client.post("/queues/jobs/push/", headers={"Referer": "http://testserver/queues/jobs/?end=max"})
    assert answer.url == "/accounts/login/?unsent=1&next=/queues/jobs/%3Fend%3Dmax"
    foreign = client.post("/queues/jobs/push/", headers={"Referer": "http://evil.example/x"})
    assert foreign.url == "/accounts/login/?unsent=1&next=/"


def test_the_login_page_says_that_an_act_without_login_changed_nothing(ann, client) -> None:
    told = "Nothing was changed: you are not logged in any more."
    act = client.post("/queues/jobs/push/", headers={"Referer": "http://testserver/queues/jobs/"})
    assert told in client.get(act.url).content.decode()
    wrong = client.post(LOGIN, credentials("wrong", next="/queues/jobs/", unsent="1"))
    assert told in wrong.content.decode()
    assert told not in client.get(client.get("/queues/jobs/").url).content.decode()
    assert client.post(LOGIN, credentials(next="/queues/jobs/", unsent="1")).url == "/queues/jobs/"


def test_a_fragment_without_login_sends_the_whole_page_to_login(client, db) -> None:
    headers = {"HX-Request": "true", "Referer": "http://testserver/queues/jobs/"}
    answer = client.get("/queues/jobs/", headers=headers)
    assert answer.status_code == 401
    assert answer.headers["HX-Redirect"] == "/accounts/login/?next=/queues/jobs/"


def test_the_session_is_a_new_one_after_login(ann, client) -> None:
    client.get(LOGIN)
    session = client.session
    session["planted"] = "by another person"
    session.save()
    before = session.session_key
    client.cookies["pqadmin_session"] = before
    client.post(LOGIN, credentials())
    assert client.session.session_key != before
    fixed = Client()
    fixed.cookies["pqadmin_session"] = before
    assert fixed.get("/").status_code == 302


def test_the_form_needs_its_token(ann) -> None:
    answer = Client(enforce_csrf_checks=True).post(LOGIN, credentials())
    assert answer.status_code == 403
    assert "too old" in answer.content.decode()


def test_a_login_form_of_before_a_login_in_another_tab_leads_to_its_page(ann) -> None:
    browser = Client(enforce_csrf_checks=True)
    token = browser.get(f"{LOGIN}?next=/queues/jobs/").context["csrf_token"]
    form = credentials(next="/queues/jobs/", csrfmiddlewaretoken=str(token))
    for _tab in range(2):
        assert browser.post(LOGIN, form).url == "/queues/jobs/"


@pytest.mark.parametrize("name", [" ann ", "\uff41nn"])
def test_such_a_form_leads_on_by_any_spelling_that_the_login_takes(ann, name: str) -> None:
    browser = Client(enforce_csrf_checks=True)
    form = credentials(csrfmiddlewaretoken=str(browser.get(LOGIN).context["csrf_token"]))
    assert browser.post(LOGIN, form).status_code == 302
    assert browser.post(LOGIN, {**form, "username": name}).status_code == 303


@pytest.mark.parametrize("name", ["bob", "Ann", ""])
def test_such_a_form_of_another_person_does_not_lead_on_as_the_first(ann, name: str) -> None:
    browser = Client(enforce_csrf_checks=True)
    form = credentials(next="/queues/jobs/", csrfmiddlewaretoken=str(browser.get(LOGIN).context["csrf_token"]))
    browser.post(LOGIN, form)
    answer = browser.post(LOGIN, {**form, "username": name})
    assert answer.status_code == 403
    page = answer.content.decode()
    assert "This browser is signed in as <b><bdi>ann</bdi></b>" in page
    main = page[page.index("<main") : page.index("</main>")]
    assert 'action="/accounts/logout/"' in main
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', main).group(1)
    assert browser.post("/accounts/logout/", {"csrfmiddlewaretoken": token}).url == LOGIN
    assert browser.get("/").status_code == 302


def test_an_inactive_person_stays_out(ann, client) -> None:
    ann.is_active = False
    ann.save()
    assert client.post(LOGIN, credentials()).status_code == 422


def test_logout_is_a_form_and_ends_the_session(ann, client) -> None:
    client.force_login(ann)
    assert client.get("/accounts/logout/").status_code == 405
    assert client.get("/").status_code == 200
    answer = client.post("/accounts/logout/")
    assert (answer.status_code, answer.url) == (302, LOGIN)
    assert client.get("/").status_code == 302


def test_a_logged_in_person_needs_no_login_page(ann, client) -> None:
    client.force_login(ann)
    assert client.get(LOGIN).url == "/"


def test_changing_the_password_ends_other_sessions_and_keeps_this_one(ann, client) -> None:
    other = Client()
    other.post(LOGIN, credentials())
    client.post(LOGIN, credentials())
    new = "another-battery-staple"
    form = {"old_password": PASSWORD, "new_password1": new, "new_password2": new}
    answer = client.post(reverse("accounts:password"), form, follow=True)
    assert "Your password is changed" in answer.content.decode()
    assert client.get("/").status_code == 200
    assert other.get("/").status_code == 302
    assert Client().post(LOGIN, credentials(password=new)).status_code == 302


class Meanwhile(MD5PasswordHasher):
    """A hasher during which something else happens: a real one takes its time."""

    happens: Callable[[], object] = staticmethod(lambda: None)

    def verify(self, password: str, encoded: str) -> bool:
        """Compare, and let it happen."""
        found = super().verify(password, encoded)
        self.happens()
        return found


@pytest.fixture
def meanwhile(settings, monkeypatch: pytest.MonkeyPatch, ann) -> Callable[[Callable[[], object]], None]:
    """Let something happen once while the next password is compared."""
    settings.PASSWORD_HASHERS = [f"{__name__}.Meanwhile"]

    def let(happen: Callable[[], object]) -> None:
        def once() -> None:
            monkeypatch.setattr(Meanwhile, "happens", staticmethod(lambda: None))
            happen()

        monkeypatch.setattr(Meanwhile, "happens", staticmethod(once))

    return let


def change_password(client: Client, new: str = "another-battery-staple"):
    form = {"old_password": PASSWORD, "new_password1": new, "new_password2": new}
    return client.post(reverse("accounts:password"), form)


def test_a_change_of_the_password_undoes_no_other_change_of_the_person(ann, client, meanwhile) -> None:
    """What an admin takes away while the passwords are hashed stays taken away."""
    User.objects.update(is_superuser=True, is_staff=True)
    client.force_login(ann)
    meanwhile(lambda: User.objects.update(is_superuser=False, is_staff=False, email="new@example.org"))
    assert change_password(client).status_code == 302
    ann.refresh_from_db()
    assert (ann.is_superuser, ann.is_staff, ann.email) == (False, False, "new@example.org")
    assert ann.check_password("another-battery-staple")


@pytest.mark.parametrize("change", [{"is_active": False}, {"password": "reset"}])
def test_a_person_that_is_shut_out_meanwhile_changes_no_password(ann, client, meanwhile, change) -> None:
    client.force_login(ann)
    meanwhile(lambda: User.objects.update(**change))
    answer = change_password(client)
    assert answer.status_code == 409
    assert "Your account was changed meanwhile. Your password was not changed." in answer.content.decode()
    assert User.objects.filter(pk=ann.pk, **({"password": ann.password} | change)).exists()
    assert client.get("/").status_code == 302


def test_a_person_that_is_deleted_meanwhile_changes_no_password(ann, client, meanwhile) -> None:
    client.force_login(ann)
    meanwhile(lambda: User.objects.all().delete())
    assert change_password(client).status_code == 409
    assert not User.objects.exists()


@pytest.mark.parametrize("new", ["short", "1234567890123", "password123", "ann"])
def test_a_weak_new_password_is_refused(ann, client, new: str) -> None:
    client.force_login(ann)
    form = {"old_password": PASSWORD, "new_password1": new, "new_password2": new}
    answer = client.post(reverse("accounts:password"), form)
    ann.refresh_from_db()
    assert ann.check_password(PASSWORD)
    assert answer.context["form"].errors["new_password2"]


def test_the_old_password_is_no_new_one(ann, client) -> None:
    client.force_login(ann)
    form = dict.fromkeys(("old_password", "new_password1", "new_password2"), PASSWORD)
    answer = client.post(reverse("accounts:password"), form)
    assert answer.status_code == 200
    assert answer.context["form"].errors == {"new_password1": ["This is the old password: choose another one."]}
    wrong = client.post(reverse("accounts:password"), {**form, "old_password": "wrong"})
    assert set(wrong.context["form"].errors) == {"old_password"}


def test_cookies_are_for_this_site_only_and_secure_under_https(ann, client) -> None:
    answer = client.post(LOGIN, credentials())
    cookie = answer.cookies["pqadmin_session"]
    assert (cookie["httponly"], cookie["samesite"], cookie["secure"]) == (True, "Lax", "")
    secure = Client().post(LOGIN, credentials(), secure=True)
    assert secure.cookies["pqadmin_session"]["secure"] is True


def test_a_password_hashed_with_more_memory_is_hashed_anew_at_login(ann, client, settings) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
    ann.set_password(PASSWORD)
    ann.save()
    assert "m=102400" in ann.password
    settings.PASSWORD_HASHERS = ["pqadmin.accounts.passwords.OneAtATime"]
    assert client.post(LOGIN, credentials()).status_code == 302
    ann.refresh_from_db()
    assert "m=47104,t=2,p=1" in ann.password
