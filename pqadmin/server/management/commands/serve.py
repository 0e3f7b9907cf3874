"""`serve [--host HOST] [--port PORT]`: the whole site in one process."""

import argparse
import gc
import os
import socket
import sys
import threading
from importlib import import_module
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.db import connections
from rich.console import Console
from rich.text import Text

from pqadmin import __version__, fatal_signals, jobs, store
from pqadmin.commands.base import OwnCommand, writing_stdout
from pqadmin.commands.saved_tokens import is_server
from pqadmin.conf import environment, ip, proxy
from pqadmin.server import first_start, housekeeping, listen_socket, resources
from queues.errors import QueueError, StoreDamaged, StoreError, StoreUnreachable

THREADS_END_WITHIN = 3.0  # seconds


class Command(OwnCommand):
    """Serve the site. The first start makes everything that is needed and prints the admin's password."""

    requires_system_checks = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the address."""
        parser.add_argument("--host", default=settings.PQADMIN_HOST, help="address to listen on (PQADMIN_HOST)")
        parser.add_argument(
            "--port", type=_port, default=settings.PQADMIN_PORT, help="port to listen on; 0 picks one (PQADMIN_PORT)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Serve, or raise a CommandError of one line."""
        host, port = options["host"], options["port"]
        if is_server(settings.PQADMIN_STORE):
            raise CommandError("PQADMIN_STORE is the store of another site: a site serves a store of its own.")
        resources.share_arenas()
        self._descriptors = resources.raise_limit()
        try:
            with listen_socket.bind(host, port) as listener:
                self._serve(listener, host)
        except (listen_socket.CannotListen, first_start.CannotStart) as error:
            raise CommandError(str(error)) from None
        except KeyboardInterrupt:  # before the server handles signals
            raise SystemExit(130) from None

    def _serve(self, listener: socket.socket, host: str) -> None:
        fatal_signals.watch(settings.PQADMIN_STORE)
        first_start.prepare(show=_show_admin)
        try:
            store.get_store()
        except (StoreUnreachable, StoreDamaged) as error:
            # It may come back, or be restored; pages and probes report it until then. A service manager would start an
            # ended site again and again.
            how = "used" if isinstance(error, StoreDamaged) else "reached"
            self.stderr.write(f"The store {settings.PQADMIN_STORE} cannot be {how} yet: {error}")
        except (StoreError, QueueError) as error:
            raise CommandError(f"The store {settings.PQADMIN_STORE} cannot be used: {error}") from None
        if host not in settings.ALLOWED_HOSTS and host not in ip.ALL:
            settings.ALLOWED_HOSTS.append(f"[{host}]" if ":" in host else host)
        connections.close_all()  # the main thread serves no request

        from pqadmin.limits import body_size
        from pqadmin.live import monitor
        from pqadmin.server.daphne_server import DaphneServer  # installs the reactor

        asgi = import_module(settings.ASGI_APPLICATION.rpartition(".")[0])  # needs the prepared files
        application, pages = asgi.application, asgi.pages
        from pqadmin.server.http_channel import Limits

        import_module(settings.ROOT_URLCONF)  # every view now, not in the first request
        limits = Limits(
            body=body_size.most,
            connections=resources.connections(self._descriptors, settings.PQADMIN_MAX_CONNECTIONS),
            connections_per_address=settings.PQADMIN_CONNECTIONS_PER_ADDRESS,
            is_proxy=lambda address: proxy.is_in(address, settings.PQADMIN_TRUSTED_PROXY),
        )

        def drain() -> None:
            asgi.stop_waits()
            monitor.shutdown()

        server = DaphneServer(application, listener, limits, fast=asgi.fast, on_drain=drain)
        badge = [("Environment", settings.PQADMIN_ENVIRONMENT)] if settings.PQADMIN_ENVIRONMENT else []
        _show(
            [
                ("pqadmin", f"{__version__}, stop with Ctrl-C"),
                ("Address", listen_socket.url(listener)),
                *badge,
                ("Store", settings.PQADMIN_STORE),
            ],
            "The site was not started.",
        )
        kept = housekeeping.Housekeeping()
        run = jobs.Running()
        monitor.get_monitor().warm_up(then=_freeze)
        server.run()
        run.end()
        kept.end()
        pages.close()
        store.close_store()
        connections.close_all()
        self._leave_soon()

    def _leave_soon(self) -> None:
        """End the process even if a view does not come back."""
        sys.stdout.flush()
        watchdog = threading.Timer(THREADS_END_WITHIN, os._exit, (0,))
        watchdog.daemon = True
        watchdog.start()


def _show_admin(admin: first_start.FirstAdmin) -> None:
    first = ("First start", "an admin was created; the password is shown only now")
    _show([first, ("Name", admin.name), ("Password", admin.password)], first_start.NOT_MADE)


def _show(lines: list[tuple[str, str]], unwritten: str) -> None:
    """Print names and values in two columns, never wrapped; raise CommandError with `unwritten` if that fails."""
    console = Console(file=sys.stdout, soft_wrap=True, highlight=False)
    width = max(len(name) for name, _ in lines)
    with writing_stdout(unwritten):
        with console.capture() as drawn:  # which the console itself would write without telling of a closed pipe
            for name, value in lines:
                console.print(Text.assemble((f"  {name:<{width}}  ", "dim"), (value, "bold")), soft_wrap=True)
        sys.stdout.write(drawn.get())


def _freeze() -> None:
    """Exclude the first reading from garbage collection.

    Of 10,000 queues a collection takes 130 ms in which nothing else runs. Objects that replace those of changed queues
    are collected again.
    """
    gc.collect()
    gc.freeze()


def _port(text: str) -> int:
    try:
        return environment.parse_port(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
