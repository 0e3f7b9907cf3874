"""A plain Django site on Daphne with the overview's page, for `benchmarks.stock`: what one would write in an afternoon.

One model with a row for each queue in SQLite, a view with two queries (a window of a hundred rows, the sums of all) and
a template with the overview's markup; sessions, login, CSRF and gzip as Django has them, templates cached, DEBUG off.
What surrounds the rows is text taken from our own page, so it costs this site nothing. It is not live: nothing
else is done here.

    python -m benchmarks.harness.stock_site FOLDER fill QUEUES    prints a session's cookie
    daphne benchmarks.harness.stock_site:application              with STOCK_FOLDER set
"""

import json
import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import django
from django.conf import settings

FOLDER = Path(os.environ.get("STOCK_FOLDER") or sys.argv[1])

settings.configure(
    DEBUG=False,
    SECRET_KEY="benchmark",  # of a site that lives for a minute
    ALLOWED_HOSTS=["127.0.0.1"],
    ROOT_URLCONF=__name__,
    USE_TZ=True,
    INSTALLED_APPS=[
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.sessions",
        "django.contrib.messages",
        "django.contrib.humanize",
    ],
    MIDDLEWARE=[
        "django.middleware.security.SecurityMiddleware",
        "django.middleware.gzip.GZipMiddleware",
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.locale.LocaleMiddleware",
        "django.middleware.common.CommonMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
    ],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": FOLDER / "stock.sqlite3"}},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    TEMPLATES=[
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "DIRS": [FOLDER],
            "APP_DIRS": True,
            "OPTIONS": {
                "context_processors": [
                    "django.template.context_processors.request",
                    "django.contrib.auth.context_processors.auth",
                    "django.contrib.messages.context_processors.messages",
                ]
            },
        }
    ],
)
django.setup()

from django.contrib.auth.decorators import login_required
from django.core.asgi import get_asgi_application
from django.db import connection, models
from django.db.models import Count, Min, Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path


class Queue(models.Model):
    """One queue as a table of a dashboard would have it."""

    name = models.CharField(max_length=200, unique=True)
    state = models.CharField(max_length=20)
    ready = models.IntegerField(db_index=True)
    delayed = models.IntegerField()
    leased = models.IntegerField()
    dead = models.IntegerField()
    rate_in = models.FloatField()
    rate_out = models.FloatField()
    oldest = models.DateTimeField()
    outlook = models.CharField(max_length=40)
    min_priority = models.IntegerField()
    min_value = models.CharField(max_length=200)
    min_pushed = models.DateTimeField()
    max_priority = models.IntegerField()
    max_value = models.CharField(max_length=200)
    max_pushed = models.DateTimeField()
    mix = models.JSONField()

    class Meta:
        """Of no app that is installed."""

        app_label = "stock"

    def __str__(self) -> str:
        """Return the name."""
        return self.name


ROWS = """{% load humanize %}{% for q in queues %}<tr data-queue="{{ q.name }}" data-queue-id="{{ q.pk }}" data-state="{{ q.state }}"
 data-problem=""><th scope="row" class="name"><i class="shape" aria-hidden="true"></i><a href="/queues/{{ q.name|urlencode }}/"
 data-part="link" title="{{ q.name }}"><bdi data-part="name"><b>{{ q.name }}</b></bdi></a><button class="star" form="stars" name="on"
 value="{{ q.pk }}" aria-pressed="false" aria-label="Favorite: {{ q.name }}">☆</button><small data-field="state" data-value="{{ q.state }}"
 title="{{ q.state }}">{{ q.state }}</small></th><td class="r ready"><span data-field="ready" data-value="{{ q.ready }}">{{ q.ready|intcomma }}</span>
<small class="also"><span data-field="delayed" data-value="{{ q.delayed }}">{{ q.delayed|intcomma }}</span> delayed <time data-field="due"
 data-countdown datetime="" hidden></time></small><small class="also"><span data-field="leased" data-value="{{ q.leased }}">{{ q.leased|intcomma }}</span>
 leased <time data-field="expiry" data-countdown datetime="" hidden></time></small><small class="also"><span data-field="dead"
 data-value="{{ q.dead }}">{{ q.dead|intcomma }}</span> dead</small></td><td class="r num" data-field="rate-in" data-value="{{ q.rate_in }}"
 data-label="in/s">{{ q.rate_in|floatformat }}</td><td class="r num" data-field="rate-out" data-value="{{ q.rate_out }}" data-label="out/s">{{ q.rate_out|floatformat }}</td><td class="r num" data-field="oldest" data-label="oldest"><time data-age datetime="{{ q.oldest|date:"c" }}">{{ q.oldest|timesince }}</time></td><td class="ends"><div class="rail" data-ready="{{ q.ready }}"><span class="end min" data-field="min"><b
 data-part="priority">{{ q.min_priority }}</b><q data-part="value">{{ q.min_value }}</q><time data-age datetime="{{ q.min_pushed|date:"c" }}">{{ q.min_pushed|timesince }}</time></span><span class="mix" data-field="mix" aria-hidden="true">{% for level in q.mix %}<i class="h{{ level }}"></i>{% endfor %}</span><span class="end max" data-field="max"><b data-part="priority">{{ q.max_priority }}</b><q data-part="value">{{ q.max_value }}</q><time
 data-age datetime="{{ q.max_pushed|date:"c" }}">{{ q.max_pushed|timesince }}</time></span><span class="rail-note">nothing ready</span></div></td>
<td class="out" data-field="outlook" data-value="{{ q.outlook }}">{{ q.outlook }}</td><td class="actions"><a class="button small"
 href="/queues/{{ q.name|urlencode }}/push/" data-part="push" aria-label="Push: {{ q.name }}">Push</a></td></tr>{% endfor %}
<tr><td>{{ sums.queues|intcomma }} {{ sums.ready|intcomma }} {{ sums.delayed|intcomma }} {{ sums.leased|intcomma }} {{ sums.dead|intcomma }}
 {{ sums.rate_in|floatformat }} {{ sums.rate_out|floatformat }} {{ sums.oldest|timesince }}</td></tr>"""  # noqa: E501 # markup


@login_required
def overview(request: HttpRequest) -> HttpResponse:
    """Show a hundred queues and the sums of all."""
    sums = Queue.objects.aggregate(
        queues=Count("pk"),
        ready=Sum("ready"),
        delayed=Sum("delayed"),
        leased=Sum("leased"),
        dead=Sum("dead"),
        rate_in=Sum("rate_in"),
        rate_out=Sum("rate_out"),
        oldest=Min("oldest"),
    )
    return render(request, "page.html", {"queues": Queue.objects.order_by("name")[:100], "sums": sums})


urlpatterns = [path("", overview)]
application = get_asgi_application()


def fill(queues: int) -> str:
    """Make the tables, so many queues and one login; return its Cookie header."""
    from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
    from django.contrib.auth.models import User
    from django.contrib.sessions.backends.db import SessionStore
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    with connection.schema_editor() as schema:
        schema.create_model(Queue)
    random, now = Random(1), datetime.now(UTC)

    def ago() -> datetime:
        return now - timedelta(seconds=random.randrange(100_000))

    def value() -> str:
        return json.dumps({"order": random.randrange(10**9), "customer": random.randrange(10**6), "note": "x" * 20})

    Queue.objects.bulk_create(
        Queue(
            name=f"shop:eu:{number % 97:02}:orders-{number:05}",
            state="ok",
            ready=random.randrange(100_000),
            delayed=random.randrange(10),
            leased=random.randrange(10),
            dead=0,
            rate_in=round(random.random() * 100, 1),
            rate_out=round(random.random() * 100, 1),
            oldest=ago(),
            outlook="keeps up",
            min_priority=random.randrange(10),
            min_value=value(),
            min_pushed=ago(),
            max_priority=random.randrange(100),
            max_value=value(),
            max_pushed=ago(),
            mix=[random.randrange(10) for _ in range(16)],
        )
        for number in range(queues)
    )
    user = User.objects.create_user("bench")
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.save()
    return f"{settings.SESSION_COOKIE_NAME}={session.session_key}"


if __name__ == "__main__":
    print(fill(int(sys.argv[3])))
