"""Write the lock files: exact versions with hashes, for every platform.

Run by `make lock`. The files name no package index: installations use their own.
"""

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOCKS = {
    "requirements.lock": ["pyproject.toml"],
    "requirements-build.lock": ["--group", "build", "--constraint", "requirements.lock"],
    "requirements-dev.lock": [
        *("pyproject.toml", "--group", "build", "--extra", "dev"),
        *("--constraint", "requirements.lock", "--constraint", "requirements-build.lock"),
    ],
    "requirements-bench.lock": ["pyproject.toml", "--extra", "bench", "--constraint", "requirements-dev.lock"],
}


def main() -> None:
    """Resolve all files with uv, installed into a throw-away environment."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / "bin" / "python"
        subprocess.run([python, "-m", "pip", "install", "--quiet", "uv"], check=True)
        for name, choice in LOCKS.items():
            command = [
                *(Path(folder) / "bin" / "uv", "pip", "compile", *choice, "--upgrade"),
                *("--universal", "--python-version", "3.11", "--generate-hashes", "--no-emit-index-url"),
                *("--no-annotate", "--no-header", "--no-emit-find-links", "--quiet", "--output-file", ROOT / name),
            ]
            subprocess.run(command, check=True, cwd=ROOT, env=os.environ | {"UV_NO_CONFIG": "1"})
            sys.stdout.write(f"wrote {name}\n")


if __name__ == "__main__":
    main()
