"""Take every picture of the documents anew: `make pictures`."""

import json
import sys
import tempfile
from pathlib import Path

from tests.browser.conftest import ROOT, open_chromium
from tests.browser.pictures.png import shrink
from tests.browser.pictures.shots import Photographer, demo_site

#: Where they lie, and the places and colors of what they show, which the tests compare.
FOLDER = ROOT / "docs" / "img"
LAYOUTS = FOLDER / "layouts.json"


def main() -> None:
    """Write the pictures and remove those that are no longer taken."""
    with tempfile.TemporaryDirectory() as folder, open_chromium() as browser, demo_site(Path(folder)) as site:
        photographer = Photographer(site, browser)
        taken = {name: photographer.take(name, sharp=True) for name in photographer.shots}
        files = {f"{name}.png": shrink(one.png, browser) for name, one in taken.items()}
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("*.png"):
        if old.name not in files:
            old.unlink()
    for name, png in files.items():
        (FOLDER / name).write_bytes(png)
        sys.stdout.write(f"{name}  {len(png) / 1000:.0f} kB\n")
    lines = [f"{json.dumps(name)}: [\n{_lines(one.layout)}\n]" for name, one in taken.items()]
    LAYOUTS.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


def _lines(layout: list[dict[str, object]]) -> str:
    return ",\n".join("  " + json.dumps(one) for one in layout)


if __name__ == "__main__":
    main()
