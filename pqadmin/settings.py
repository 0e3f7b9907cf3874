"""Django's settings; what can be chosen is declared in `pqadmin.conf.environment`."""

import os
from pathlib import Path

from pqadmin.conf import environment, secret_key

_chosen = environment.read(os.environ)
_package = Path(__file__).resolve().parent
#: Holds `templates` and `static`: the package in a wheel, the repository in a checkout.
_assets = _package if (_package / "templates").is_dir() else _package.parent

PQADMIN_STORE = _chosen.store
PQADMIN_TOKEN = _chosen.token
PQADMIN_DATA = _chosen.data
PQADMIN_HOST = _chosen.host
PQADMIN_PORT = _chosen.port
PQADMIN_TRUSTED_PROXY = _chosen.trusted_proxy
PQADMIN_MAX_BODY = _chosen.max_body
PQADMIN_MAX_UPLOAD = _chosen.max_upload
PQADMIN_MAX_CONNECTIONS = _chosen.max_connections
PQADMIN_CONNECTIONS_PER_ADDRESS = _chosen.connections_per_address
PQADMIN_REQUESTS_PER_ADDRESS = _chosen.requests_per_address
PQADMIN_REQUESTS_PER_PERSON = _chosen.requests_per_person
PQADMIN_SOCKETS_PER_PERSON = _chosen.sockets_per_person
PQADMIN_WAITS_PER_TOKEN = _chosen.waits_per_token
PQADMIN_WAITS_PER_PERSON = _chosen.waits_per_person
PQADMIN_CORS_ORIGINS = _chosen.cors_origins
PQADMIN_VIEW_THREADS = _chosen.view_threads  # a request waits its turn on the least busy one
PQADMIN_MIN_FREE_BYTES = _chosen.min_free_bytes
PQADMIN_ENVIRONMENT = _chosen.environment
PQADMIN_ARM_MINUTES = _chosen.arm_minutes
PQADMIN_REDACT = _chosen.redact
PQADMIN_STALLED_SECONDS = _chosen.stalled_seconds
PQADMIN_GROWING_SECONDS = _chosen.growing_seconds
PQADMIN_OLDEST_SECONDS = _chosen.oldest_seconds
PQADMIN_DEAD_ITEMS = _chosen.dead_items
PQADMIN_AUDIT_DAYS = _chosen.audit_days

DEBUG = False
ALLOWED_HOSTS = list(_chosen.allowed_hosts)
SECRET_KEY = secret_key.read(PQADMIN_DATA)  # the first start mints and keeps one

INSTALLED_APPS = [
    "pqadmin.accounts.apps.SuperuserAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.forms",
    "channels",
    "pqadmin.server",
    "pqadmin.accounts",
    "pqadmin.dashboard",
    "pqadmin.live",
    "pqadmin.commands",
    "pqadmin.pages",
    "pqadmin.people",
    "pqadmin.wall",
]

MIDDLEWARE = [
    "pqadmin.server.security.security_headers",
    "django.middleware.gzip.GZipMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "pqadmin.pages.reader_preferences.follow_reader",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "pqadmin.accounts.access.AccessMiddleware",
    "pqadmin.live.middleware.read_after_acts",
    "pqadmin.pages.outage.StoreErrorMiddleware",
]

ROOT_URLCONF = "pqadmin.urls"
ASGI_APPLICATION = "pqadmin.asgi.application"

FORM_RENDERER = "django.forms.renderers.TemplatesSetting"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [_assets / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "pqadmin.accounts.context.account",
            ],
        },
    },
]

DATABASES = {"default": dict(_chosen.database)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 10},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
PASSWORD_HASHERS = [
    "pqadmin.accounts.passwords.OneAtATime",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
LOGIN_URL = "accounts:login"
LOGIN_REDIRECT_URL = "dashboard:overview"
LOGOUT_REDIRECT_URL = "accounts:login"

SESSION_COOKIE_NAME = "pqadmin_session"
CSRF_COOKIE_NAME = "pqadmin_csrf"
CSRF_COOKIE_HTTPONLY = True
CSRF_FAILURE_VIEW = "pqadmin.pages.error_pages.csrf_failure"
# What `check --deploy` asks for and the site does otherwise: cookies become Secure on every answer to an
# https request, headers are set by pqadmin.server.security, and HSTS and the redirect to https belong to the
# proxy that holds the certificate.
SILENCED_SYSTEM_CHECKS = [
    "security.W001",
    "security.W002",
    "security.W003",
    "security.W004",
    "security.W008",
    "security.W012",
    "security.W016",
]

#: Of the fields of a form, which are all read at once. The server refuses other bodies by PQADMIN_MAX_BODY before.
DATA_UPLOAD_MAX_MEMORY_SIZE = max(2_500_000, PQADMIN_MAX_BODY)
FILE_UPLOAD_MAX_MEMORY_SIZE = 250_000  # bodies that wait for a thread; larger ones wait in a temporary file
FILE_UPLOAD_HANDLERS = ["pqadmin.pages.uploads.BoundedUpload"]

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]  # each in its own language
LANGUAGE_COOKIE_NAME = "pqadmin_language"
LANGUAGE_COOKIE_AGE = 365 * 24 * 3600
LANGUAGE_COOKIE_HTTPONLY = True
LANGUAGE_COOKIE_SAMESITE = "Lax"
LOCALE_PATHS = [_package / "locale"]
TIME_ZONE = "UTC"

STATIC_URL = "/static/"
STATIC_ROOT = PQADMIN_DATA / "static"
STATICFILES_DIRS = [_assets / "static"]
JOINED_SOURCES = _assets / "static" / "pqadmin"
STATICFILES_FINDERS = [
    "pqadmin.server.asset_bundles.JoinedFinder",
    "django.contrib.staticfiles.finders.FileSystemFinder",
    "django.contrib.staticfiles.finders.AppDirectoriesFinder",
]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.InMemoryStorage"},
    "staticfiles": {"BACKEND": "pqadmin.server.assets.AssetStorage"},
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"few_of_clients": {"()": "pqadmin.conf.log.FewOfClients"}},
    "formatters": {"line": {"()": "pqadmin.conf.log.OneLine"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["few_of_clients"]}},
    "root": {"handlers": ["stderr"], "level": "WARNING"},
    "loggers": {
        "pqadmin": {"level": "INFO"},
        "django": {"handlers": [], "level": "WARNING", "propagate": True},
        "django.server": {"handlers": [], "level": "WARNING", "propagate": True},
        "django.request": {"level": "ERROR"},
        # At DEBUG these print what pages and tables hold: values, sessions, passwords.
        "django.template": {"level": "INFO"},
        "django.db.backends": {"level": "INFO"},
        "daphne": {"level": "WARNING"},
    },
}
