"""Take every picture of the documents anew: `make pictures`."""

import sys
import tempfile
from pathlib import Path

from tests.browser.conftest import ROOT, open_chromium
from tests.browser.pictures.png import shrink
from tests.browser.pictures.shots import Photographer, demo_site

#: Where they lie.
FOLDER = ROOT / "docs" / "img"


def main() -> None:
    """Write the pictures and remove those that are no longer taken."""
    with tempfile.TemporaryDirectory() as folder, open_chromium() as browser, demo_site(Path(folder)) as site:
        photographer = Photographer(site, browser)
        files = {f"{name}.png": shrink(photographer.take(name), browser) for name in photographer.shots}
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("*.png"):
        if old.name not in files:
            old.unlink()
    for name, png in files.items():
        (FOLDER / name).write_bytes(png)
        sys.stdout.write(f"{name}  {len(png) / 1000:.0f} kB\n")


if __name__ == "__main__":
    main()
