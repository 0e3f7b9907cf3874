"""A bulk move of 100,000 items in a real browser: canceled, its server killed and restarted in the middle, undone.

    python -m tests.soak.bulk_move [--items 100000] [--store fdb:CLUSTER_FILE] [--rate N]

Nothing may be lost or be there twice, every item must be back at its place in the end, and the sum of both queues must
be the same in every live frame. Without `--store` it runs on an embedded store in a temporary folder; a store that is
named has to be empty. Prints what it saw; exits with 1 when something was wrong.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

from queues import open_store
from tests.browser import conftest
from tests.browser.bulk_move import BulkMove
from tests.browser.conftest import ARGUMENTS, Site, sign_in

#: Seconds; reached only when something hangs, also on a machine that does much else.
PATIENCE = 180.0


def main() -> int:
    """Run it and print what was seen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--store", default="")
    parser.add_argument("--rate", default="")
    arguments = parser.parse_args()
    conftest.PATIENCE = PATIENCE
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        site = Site(Path(folder), arguments.store)
        site.start()
        path = os.environ.get("PQ_CHROMIUM") or next(
            filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
        )
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        try:
            context = browser.new_context(base_url=site.address, reduced_motion="reduce")
            context.set_default_timeout(PATIENCE * 1000)
            page, watcher = context.new_page(), context.new_page()
            sign_in(page, "admin", site.password)
            with open_store(site.store_url) as store:
                move = BulkMove(site, store, page, watcher, arguments.items)
                try:
                    move.run(rate=arguments.rate)
                finally:
                    for line in move.told:
                        sys.stdout.write(f"{line}\n")
        finally:
            browser.close()
            site.stop()
    sys.stdout.write(f"All {arguments.items:,} items are where they were, after {time.monotonic() - began:.0f} s.\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
