"""Commands that are run to their end in forks of one process, which has imported what all of them need.

Each is a process of its own, with its own descriptors, environment and exit status, and costs a tenth of a start.
What is about the start of the interpreter itself is not for these: PYTHONPATH, PYTHONIOENCODING, closed descriptors.
"""

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import IO, Any

from tests.waiting import LONG

ROOT = Path(__file__).resolve().parents[1]
#: The two forms of the command line.
MODULE, MANAGE = "pqadmin", str(ROOT / "manage.py")
_SERVER = """
import json
import os
import runpy
import socket
import sys

import django.core.management
import django.db
import django.template
import django.urls

import pqadmin.cli
import queues

control = socket.socket(fileno=int(sys.argv[1]))
while True:
    request, descriptors, _, _ = socket.recv_fds(control, 1_000_000, 3)
    if not request:
        os._exit(0)
    if not (child := os.fork()):
        break
    for descriptor in descriptors:
        os.close(descriptor)
    control.send(b"%d" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
control.close()
for number, descriptor in enumerate(descriptors):
    os.dup2(descriptor, number)
    os.close(descriptor)
asked = json.loads(request)
os.environ.clear()
os.environ.update(asked["env"])
os.chdir(asked["cwd"])
os.umask(asked["umask"])
sys.argv[:] = [asked["form"], *asked["words"]]
if asked["source"]:
    sys.argv[0] = "-c"
    exec(asked["source"], {"__name__": "__main__"})
elif asked["form"] == "pqadmin":
    runpy.run_module("pqadmin", run_name="__main__", alter_sys=True)
else:
    runpy.run_path(asked["form"], run_name="__main__")
"""


def run_forked(
    *words: str,
    form: str = MODULE,
    source: str = "",
    folder: Path = ROOT,
    env: Mapping[str, str] | None = None,
    umask: int = 0o022,
    stdout: IO[Any] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run a command to its end, and return what it printed.

    `source` is a program that calls the command line, in place of a form of it; `stdout` is where output goes instead.
    """
    asked = {"words": words, "form": form, "source": source, "cwd": str(folder), "umask": umask}
    asked["env"] = dict(env or os.environ)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, Path(os.devnull).open("rb") as nothing:
        control, _ = _server()
        written = [nothing.fileno(), (stdout or out).fileno(), err.fileno()]
        socket.send_fds(control, [json.dumps(asked).encode()], written)
        try:
            code = int(control.recv(100))
        except BaseException:  # it does not end
            _end()
            raise
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(words, code, out.read(), err.read())


def run_forked_text(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, and return what it printed as text."""
    done = run_forked(*words, **options)
    return subprocess.CompletedProcess(
        words, done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    )


@cache
def _server() -> tuple[socket.socket, subprocess.Popen[bytes]]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.settimeout(LONG)
    own = ("PQ", "DJANGO", "DATABASE", "PYTHONUNBUFFERED", "PYTHONFAULTHANDLER")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    process = subprocess.Popen(
        [sys.executable, "-c", _SERVER, str(theirs.fileno())],
        cwd=ROOT,
        env=clean | {"PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=[theirs.fileno()],
        process_group=0,
    )
    theirs.close()
    return ours, process


@atexit.register
def _end() -> None:
    """End the process, and a command of it that still runs."""
    if _server.cache_info().currsize:
        control, process = _server()
        _server.cache_clear()
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        control.close()
