"""Templates are read by people: their lines fit a screen."""

from pathlib import Path

TEMPLATES = Path(__file__).resolve().parents[3] / "templates"


def test_no_template_has_a_line_over_160_columns() -> None:
    long = [
        f"{path.relative_to(TEMPLATES)}:{number}"
        for path in sorted(TEMPLATES.rglob("*.html"))
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if len(line) > 160
    ]
    assert not long
