"""A FoundationDB server of one's own on this machine: started, killed, started again.

Its programs are PQ_FDBSERVER and PQ_FDBCLI, else `fdbserver` and `fdbcli` on the PATH.
"""

import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Self

from tests.ports import free_port


def program(name: str) -> str | None:
    """Return where one of FoundationDB's programs is; None when this machine has none."""
    return os.environ.get(f"PQ_{name.upper()}") or shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/bin")


class Server:
    """One fdbserver with a fresh database in a folder; a context manager that ends it."""

    def __init__(self, folder: Path) -> None:
        found = program("fdbserver"), program("fdbcli")
        if found[0] is None or found[1] is None:
            raise FileNotFoundError("no fdbserver and fdbcli on the PATH, and none named by PQ_FDBSERVER, PQ_FDBCLI")
        self._fdbserver, self._fdbcli = found[0], found[1]
        self._folder = folder
        self._address = f"127.0.0.1:{free_port()}"
        self.cluster_file = folder / "fdb.cluster"
        self.cluster_file.write_text(f"pqadmin:soak@{self._address}\n")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The store URL of its cluster."""
        return f"fdb:{self.cluster_file}"

    def __enter__(self) -> Self:
        self.start()
        subprocess.run(
            [self._fdbcli, "-C", self.cluster_file, "--exec", "configure new single ssd", "--timeout", "60"],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        """Start the server; clients find it when it has recovered."""
        data, logs = self._folder / "data", self._folder / "logs"
        logs.mkdir(exist_ok=True)
        command = [self._fdbserver, "-p", self._address, "-C", self.cluster_file, "-d", data, "-L", logs]
        # A disk that is nearly full for other processes' reasons must not stop a test.
        command.append("--knob_min_available_space_ratio=0.001")
        with (self._folder / "output").open("ab") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=output)

    def kill(self) -> None:
        """Kill the server with SIGKILL, in whatever it is doing."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None
