"""Install the newest wheel of dist/ as a user would, into an empty environment and folder, and serve from there.

Run by `make wheel-check`: it downloads every dependency, which is why it is not a part of `make test`; there
tests/site/test_wheel.py shows the same with the dependencies at hand.
"""

import re
import subprocess
import sys
import tempfile
import urllib.request
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    """Return 0 if the installed command served its login page."""
    wheel = max((ROOT / "dist").glob("pqadmin-*.whl"), key=lambda path: path.stat().st_mtime)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        venv.create(home / "venv", with_pip=True)
        pip = [home / "venv" / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--require-hashes", "-r", ROOT / "requirements.lock"], check=True)
        subprocess.run([*pip, "--no-deps", wheel], check=True)
        (home / "empty").mkdir()
        command = [home / "venv" / "bin" / "pqadmin", "serve", "--port", "0"]
        with subprocess.Popen(command, cwd=home / "empty", stdout=subprocess.PIPE, text=True) as server:
            try:
                for line in server.stdout or ():
                    if address := re.search(r"Address\s+(http://\S+)/", line):
                        with urllib.request.urlopen(f"{address.group(1)}/accounts/login/", timeout=30) as page:
                            sys.stdout.write(f"{wheel.name}: {page.url} answers {page.status}\n")
                        break
            finally:
                server.terminate()
        return server.returncode


if __name__ == "__main__":
    sys.exit(main())
