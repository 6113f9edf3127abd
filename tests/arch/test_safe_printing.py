"""The command line prints by one function, which makes text harmless for a terminal."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from dispatcher import safe_text
from dispatcher.safe_text import SafeText, made_safe
from tests.arch.trees import nodes_of

ROOT = Path(__file__).parents[2]
DISPATCHER = ROOT / "dispatcher"

#: Rooms that print.
ROOMS = ("cli", "live_view", "nni", "terminal")

#: What reaches a terminal without being made harmless, or says that it is, or styles it.
DIRECT = {
    "print",
    "typer.echo",
    "typer.secho",
    "typer.style",
    "click.echo",
    "click.secho",
    "Console",
    "rich.print",
    "SafeText",
    "sys.stdout.write",
    "sys.stdout.writelines",
    "sys.stdout.buffer.write",
    "sys.stderr.write",
    "sys.stderr.writelines",
    "sys.stderr.buffer.write",
    "os.write",
}

#: (file, what) → why it is right there.
ALLOWED: dict[tuple[str, str], str] = {
    (
        "terminal/console.py",
        "typer.echo",
    ): "the lowest printing functions, made of nothing but safe text",
    ("terminal/console.py", "sys.stdout.buffer.write"): "bytes into a pipe, not to a terminal",
    ("terminal/console.py", "typer.style"): "styles what was made safe",
    ("terminal/console.py", "SafeText"): "styles, tables of safe cells, JSON with its own escapes",
    ("cli/foreground.py", "os.write"): "a constant, in a signal handler",
    ("cli/lineage.py", "SafeText"): "a tree whose parts were made safe as they were painted",
    ("cli/main.py", "typer.echo"): "our version; what --version loads is little",
    ("cli/reference.py", "sys.stdout.write"): "our own page, as a program of its own",
    ("live_view/bar.py", "sys.stderr.write"): "our own words, over the line before, in a notebook",
    ("cli/trial/log.py", "sys.stdout.buffer.write"): "--raw: bytes as the trial printed them",
}


def found_in(text: str) -> set[str]:
    return {
        name
        for node in nodes_of(text)
        if isinstance(node, ast.Call) and (name := ast.unparse(node.func)) in DIRECT
    }


@pytest.mark.parametrize(
    "path",
    sorted(path for room in ROOMS for path in (DISPATCHER / room).rglob("*.py")),
    ids=lambda path: str(path.relative_to(DISPATCHER)),
)
def test_nothing_is_printed_beside_it(path: Path) -> None:
    name = str(path.relative_to(DISPATCHER))
    found = {what for what in found_in(path.read_text()) if (name, what) not in ALLOWED}
    assert not found, "print by console.emit, say or note; or name the exception, and why, above"


def test_the_exceptions_are_still_needed() -> None:
    for name, what in ALLOWED:
        assert what in found_in((DISPATCHER / name).read_text()), (name, what)


@pytest.mark.parametrize(
    "text", ["print(x)", "typer.echo(x)", "SafeText(x)", "sys.stderr.write(x)"]
)
def test_the_rule_bites(text: str) -> None:
    assert found_in(f"def f(x):\n    {text}\n")


def test_only_what_was_made_safe_is_safe() -> None:
    """Mutation: a type that survives being cut and joined with what was never looked at."""
    styled = SafeText("\x1b[1mbold\x1b[0m")
    assert made_safe(styled) is styled
    for plain in (f"{styled}x", styled[:3], styled.strip(), "".join([styled, "x"]), styled.upper()):
        assert type(plain) is str
    for joined in (styled + "\x07", "\x07" + styled):
        assert type(joined) is SafeText
        assert "\x07" not in joined
    assert safe_text.made_safe("a\x1b[2J\nb\r") == "a␛[2J\nb␍"
