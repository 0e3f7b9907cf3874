"""Settings for the test run, loaded by pytest before Django: never the developer's own data."""

import atexit
import gc
import os
import shutil
import sys
import tempfile

gc.disable()  # until all tests are known: nothing that is imported is garbage, and looking for some takes 7 s
_data = tempfile.mkdtemp(prefix="pqadmin-tests-")
atexit.register(shutil.rmtree, _data, ignore_errors=True)
for name in ("PQADMIN_HOST", "PQADMIN_PORT", "PQADMIN_ALLOWED_HOSTS", "PQADMIN_TRUSTED_PROXY", "DATABASE_URL"):
    os.environ.pop(name, None)
os.environ["PQADMIN_DATA"] = _data
os.environ["PQADMIN_STORE"] = "memory:"
os.environ["PQADMIN_ENVIRONMENT"] = "test"
# It is not installed, and httpx looks for it on the disk for each request to an application.
sys.modules.setdefault("sniffio", None)  # type: ignore[arg-type]


def pytest_collection_finish() -> None:
    """Collect garbage again, but what tests make only."""
    gc.freeze()
    gc.enable()
