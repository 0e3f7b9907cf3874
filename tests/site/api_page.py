"""Reference page of the Python API, made from signatures and docstrings. Run by `make reference`."""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import queues
import queues.workers

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "python-api.md"
WIDTH = 100
HEAD = """# Python API

Everything that programs import: `queues` and `queues.workers`. [Errors](errors.md) has the
exceptions of `queues.errors`, [in-process queue](local-queue.md) has `queues.local`. This page is
made from the docstrings by `make reference`.
"""
#: The order of `queues`; what is not named here follows by name.
FIRST = ["open_store", "Store", "Queue", "PriorityQueue", "FifoQueue", "AsyncStore", "AsyncQueue"]
FIRST += ["AsyncPriorityQueue", "AsyncFifoQueue", "Lease", "Item"]


def page() -> str:
    """Return the page."""
    parts = [HEAD]
    for module in (queues, queues.workers):
        names = [name for name in FIRST if name in module.__all__]
        names += sorted(set(module.__all__) - set(names))
        parts.append(f"\n## {module.__name__}\n")
        for name in names:
            parts += _entry(name, getattr(module, name))
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def _entry(name: str, value: Any) -> Iterator[str]:
    if inspect.isclass(value):
        yield f"### {name}\n\n{_text(value)}"
        made = vars(value).get("__init__")  # programs make what says how
        if inspect.isfunction(made) and made.__doc__ and not is_dataclass(value):
            signature = _signature(made).removeprefix("__init__").removesuffix(" -> None")
            yield f"```python\n{name}{signature}\n```\n\n{_text(made)}"
        rows = [f"| `{field}` | `{kind}` | {says} |" for field, kind, says in _fields(value)]
        if rows:
            yield "| field | type | meaning |\n|---|---|---|\n" + "\n".join(rows)
        twin = {
            method
            for other in ([name.removeprefix("Async")] if name.startswith("Async") else [])
            for method, _ in _methods(getattr(queues, other))
        }
        same = [_signature(member, method) for method, member in _methods(value) if method in twin]
        if same:
            yield f"As `{name.removeprefix('Async')}`, for coroutines:\n\n```python\n" + "\n".join(same) + "\n```"
        for method, member in _methods(value):
            if method not in twin:
                yield _function(member, method)
    elif inspect.isfunction(value):
        yield f"### {name}\n\n{_function(value)}"
    else:
        yield f"### {name}\n\nA type: `{str(value).replace('datetime.', '').replace('typing.', '')}`."


def _function(function: Any, name: str | None = None) -> str:
    return f"```python\n{_signature(function, name)}\n```\n\n{_text(function)}"


def _signature(function: Any, name: str | None = None) -> str:
    """Return how a program calls a function: by its name in the class, which may differ from that of the source."""
    node = _node(function)
    name = name or node.name
    returns = f" -> {_type(node.returns)}" if node.returns is not None else ""
    if isinstance(function, property):
        return name + returns.replace(" ->", ":")
    arguments = [
        part for part in _arguments(node.args) if part not in ("self", "cls", "action: Action", "frame: Frame")
    ]
    if awaited := inspect.iscoroutinefunction(function):
        arguments = [part for part in arguments if not part.startswith("tr: ")]
        arguments = arguments[:-1] if arguments[-1:] == ["*"] else arguments
        returns = re.sub(r"\b(Any)?(?=(Priority|Fifo)?Queue\b)", r"\1Async", returns)
    start = ("await " if awaited else "") + name
    line = f"{start}({', '.join(arguments)}){returns}"
    if len(line) <= WIDTH:
        return line
    return f"{start}(\n" + "".join(f"    {part},\n" for part in arguments) + f"){returns}"


def _arguments(args: ast.arguments) -> Iterator[str]:
    positional = [*args.posonlyargs, *args.args]
    defaults = [None] * (len(positional) - len(args.defaults)) + [*args.defaults]
    for n, (argument, default) in enumerate(zip(positional, defaults, strict=True)):
        yield _argument(argument, default)
        if args.posonlyargs and n == len(args.posonlyargs) - 1 and [a.arg for a in args.posonlyargs] != ["self"]:
            yield "/"
    if args.vararg is not None:
        yield "*" + _argument(args.vararg, None)
    elif args.kwonlyargs:
        yield "*"
    for argument, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        yield _argument(argument, default)
    if args.kwarg is not None:
        yield "**" + _argument(args.kwarg, None)


def _argument(argument: ast.arg, default: ast.expr | None) -> str:
    text = argument.arg + (f": {_type(argument.annotation)}" if argument.annotation is not None else "")
    return text if default is None else f"{text} = {ast.unparse(default)}"


def _type(annotation: ast.expr) -> str:
    """Return an annotation as it is written, without quotes around the whole."""
    quoted = isinstance(annotation, ast.Constant) and isinstance(annotation.value, str)
    return str(annotation.value) if quoted else ast.unparse(annotation)


def _node(function: Any) -> ast.FunctionDef | ast.AsyncFunctionDef:
    inner = function.fget if isinstance(function, property) else inspect.unwrap(getattr(function, "__func__", function))
    node = ast.parse(textwrap.dedent(inspect.getsource(inner))).body[0]
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    return node


def _methods(of: type) -> Iterator[tuple[str, Any]]:
    """Yield the public methods and properties by name, in the order of the source; a public base has its own entry."""
    seen: set[str] = set()
    for kind in of.__mro__:
        if not kind.__module__.startswith("queues") or (kind is not of and kind.__name__ in queues.__all__):
            continue
        for name, member in vars(kind).items():
            inner = getattr(member, "__func__", member)
            known = inspect.isfunction(inner) or isinstance(member, property)
            if name.startswith("_") or name in seen or not known or not inspect.getdoc(member):
                continue
            seen.add(name)
            yield name, member


def _fields(of: type) -> Iterator[tuple[str, str, str]]:
    """Yield name, type and comment of the annotated fields of a value class."""
    for kind in reversed(of.__mro__):
        if not kind.__module__.startswith("queues") or "__annotations__" not in vars(kind):
            continue
        source = textwrap.dedent(inspect.getsource(kind))
        comments = _comments(source)
        body = next(node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)).body
        for field in (node for node in body if isinstance(node, ast.AnnAssign)):
            name = ast.unparse(field.target)
            if not name.startswith("_"):
                says = comments.get(name, "").replace("|", "\\|")
                yield name, _type(field.annotation).replace("|", "\\|"), says


def _comments(source: str) -> dict[str, str]:
    """Return the `#:` comment above each field; a comment holds for the fields that follow it directly."""
    found: dict[str, str] = {}
    current: list[str] = []
    fresh = True
    for line in map(str.strip, source.splitlines()):
        if line.startswith("#:"):
            current = [*([] if fresh else current), line[2:].strip()]
            fresh = False
        elif field := re.match(r"(\w+): ", line):
            found[field[1]] = " ".join(current)
            fresh = True
            current = []
        else:
            current, fresh = [], True
    return found


def _text(of: Any) -> str:
    """Return a docstring as markdown: paragraphs wrapped, indented code as it is."""
    blocks = re.split(r"\n\s*\n", inspect.getdoc(of) or "")
    return "\n\n".join(block if block.startswith("    ") else _wrapped(block) for block in blocks) + "\n"


def _wrapped(block: str) -> str:
    spans = re.sub(r"`[^`]+`", lambda span: span[0].replace(" ", "\0"), " ".join(block.split()))
    lines = textwrap.wrap(spans, WIDTH, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines).replace("\0", " ")


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
