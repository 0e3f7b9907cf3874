"""Handlers of a program: their module, and its Django project.

Django is set up with the program's settings, by `--settings` or DJANGO_SETTINGS_MODULE, or not at all.
Nothing here reads the site's settings.
"""

import functools
import importlib
import logging
import os
import sys
from pathlib import Path

import django
from django.apps import apps
from django.core.management.base import CommandError
from django.db import close_old_connections

from pqadmin.conf.log import log_lines
from queues.workers import Function, Job, Worker

#: The name of the Worker in a module, unless another is given.
DEFAULT_NAME = "worker"


def load(path: str) -> Worker:
    """Set up the program's Django, if any, import the module and return its Worker."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    _set_up_django()
    module_name, _, name = path.partition(":")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # any error of the module
        raise CommandError(f"{module_name} cannot be imported: {type(error).__name__}: {error}") from error
    worker = getattr(module, name or DEFAULT_NAME, None)
    if not isinstance(worker, Worker):
        raise CommandError(f"{module_name} has no queues.workers.Worker named {name or DEFAULT_NAME}.")
    return worker.around(_with_connections) if apps.ready else worker


def log_to_stderr(level: int) -> None:
    """Log workers from a level on; to standard error unless logging is set up."""
    for name, logger in logging.root.manager.loggerDict.items():
        if isinstance(logger, logging.Logger) and name.partition(".")[0] == "queues":
            logger.disabled = False  # Django's logging setup disables existing loggers
    log_lines("queues")
    logging.getLogger("queues.workers").setLevel(level)


def _set_up_django() -> None:
    name = os.environ.get("DJANGO_SETTINGS_MODULE")
    if not name or apps.ready:
        return
    try:
        django.setup()
    except Exception as error:  # any error of settings and applications
        del os.environ["DJANGO_SETTINGS_MODULE"]  # Django asks its settings for connections when the command ends
        raise CommandError(f"Django cannot be set up by {name}: {type(error).__name__}: {error}") from error


def _with_connections(function: Function) -> Function:
    """Return a handler that closes old database connections before and after, as a request does."""

    @functools.wraps(function)
    def handle(job: Job) -> object:
        close_old_connections()
        try:
            return function(job)
        finally:
            close_old_connections()

    return handle
