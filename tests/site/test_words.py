"""Plain words: no file gains a discouraged phrase. `python -m tests.site.test_words queues` lists those of a folder."""

import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

#: How many discouraged phrases a folder may have. These numbers only go down; the goal is 0.
BUDGET = {
    "queues": 0,
    "pqadmin": 0,
    "templates": 0,
    "static": 0,
    "docs": 0,
    "tests": 0,
    "benchmarks": 0,
    ".": 0,
}

#: A thread, process, caller, transaction, record or user does things; never "whoever" or "nobody".
DISCOURAGED = re.compile(
    r"(?<![\w.@/-])(?:"
    r"who|whoever|whom|nobody|somebody|everybody|anybody|others|can not"
    r"|hears?|stands?(?! for\b)|stood|bec(?:ome|omes|ame) of|takes? for all|not this way"
    r"|colour\w*|behaviour\w*|neighbour\w*|favourite\w*|honour\w*|centred?|catalogue\w*|licence\w*"
    r"|labelled|cancelled|cancelling|(?:re-?)?(?:prior|normal|serial|initial|organ|recogn|summar|optim|synchron|minim"
    r"|maxim|author|custom)it?is(?:e|ed|es|ing|ation)"
    r")(?![\w-])(?!\.\w|=|\()",
    re.IGNORECASE,
)
#: One quoted word is data or a name, and so is all between backticks; so are classes and tags of templates.
NAMES = re.compile(
    r"`[^`\n]+`|(?<!\w)'[\w.:-]+'(?!\w)|\"[\w.:-]+\""
    r"|\{\{.*?\}\}|class=\"[^\"]*\"|\{% (?:if|elif|for|include|with)\b[^%]*%\}"
)
SCRIPT = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`", re.DOTALL)


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line numbers and texts that a person reads: comments, docstrings, texts, names of tests."""
    text = path.read_text("utf-8")
    if path.suffix == ".py":
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and " " in token.string):
                yield token.start[0], token.string
            elif token.type == tokenize.NAME and token.string.startswith("test_"):
                yield token.start[0], token.string.replace("_", " ")
    elif path.suffix in {".js", ".css"}:
        for found in SCRIPT.finditer(text):
            if found[0][0] == "/" or " " in found[0]:
                yield text.count("\n", 0, found.start()) + 1, found[0]
    else:
        yield 1, text


def discouraged(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and the words of each discouraged phrase of a file."""
    for line, text in prose(path):
        plain = NAMES.sub(lambda name: "\n" * name[0].count("\n"), text)
        for found in DISCOURAGED.finditer(plain):
            yield line + plain.count("\n", 0, found.start()), found[0]


def files(folder: str) -> list[Path]:
    """Return the files of a top-level folder that this project wrote, or those beside the folders for "."."""
    listed = subprocess.check_output(["git", "ls-files", "-z", folder], cwd=ROOT, text=True).split("\0")
    return [
        ROOT / name
        for name in listed
        if name.endswith((".py", ".html", ".txt", ".js", ".css", ".md", ".toml"))
        and "vendor/" not in name
        and not name.endswith("python-api.md")  # its sources are counted
        and (folder != "." or "/" not in name)
        and (ROOT / name).is_file()
        and (ROOT / name).resolve() != Path(__file__).resolve()
    ]


def listing(folder: str) -> list[str]:
    """Return every discouraged phrase of a folder, as FILE:LINE: WORDS."""
    return [f"{path.relative_to(ROOT)}:{line}: {words}" for path in files(folder) for line, words in discouraged(path)]


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs the repository")
@pytest.mark.parametrize("folder", BUDGET)
def test_no_folder_gains_a_discouraged_phrase(folder: str) -> None:
    found = listing(folder)
    assert len(found) <= BUDGET[folder], (
        f"see `python -m tests.site.test_words {folder}`; the last of them: {found[-10:]}"
    )


if __name__ == "__main__":
    for name in sys.argv[1:] or BUDGET:
        print(*listing(name), sep="\n")
