"""Move modules or packages: ``python -m tests.move [--dry] old.dotted=new.dotted …``.

Run it in the root of a checkout. Files move by ``git mv``; in every text that git knows the
references follow: imports, dotted names and paths, so also anchors of mutations, import contracts
and pages. ``tests/unit`` has folders by room and no mirror of files: where a room gets another
name, its folder of tests moves in the same call (``tests.unit.old=tests.unit.new``).

Lines that name a moved file in another way, such as ``room/file.py`` in prose, are printed: read
them. Afterwards: ``ruff check --fix``, ``ruff format``, ``mypy``, ``lint-imports``.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

#: The texts that may name a module.
TEXTS = {
    "", ".cfg", ".html", ".importlinter", ".in", ".ini", ".json", ".md", ".py", ".sh", ".toml",
    ".txt", ".yaml", ".yml",
}  # fmt: skip


@dataclass(frozen=True)
class Move:
    """One module or package that gets another name."""

    old: str
    new: str
    source: Path
    target: Path

    @classmethod
    def parse(cls, text: str, root: Path) -> Move:
        """Read ``old=new``; the old name is looked up below ``root``.

        Raises:
            SystemExit: there is no such module, or the new place is taken.
        """
        old, equals, new = text.partition("=")
        if not equals:
            sys.exit(f"{text!r} is not old=new")
        source, target = Path(*old.split(".")), Path(*new.split("."))
        if (root / source.with_suffix(".py")).is_file():
            source, target = source.with_suffix(".py"), target.with_suffix(".py")
        elif not (root / source / "__init__.py").is_file():
            sys.exit(f"there is no module {old}")
        if (root / target).exists():
            sys.exit(f"{target} is there already")
        return cls(old, new, source, target)


class Moves:
    """Several moves at once, as rules for texts.

    Args:
        moves: what moves.
        modules: each module that moves, those in packages too: old dotted name to new.
    """

    def __init__(self, moves: Iterable[Move], modules: Mapping[str, str]) -> None:
        longest = sorted(moves, key=lambda move: -len(move.old))
        self._modules = modules
        self._rules = [
            (re.compile(rf"{before}{re.escape(old)}(?!\w)"), new)
            for move in longest
            for before, old, new in (
                (r"(?<![\w.])", move.old, move.new),
                (r"(?<![\w/.])", str(move.source), str(move.target)),
            )
        ]
        tails = "|".join(
            re.escape(f"{move.source.parent.name}/{move.source.name}") for move in longest
        )
        self._tail = re.compile(rf"(?<![\w/])({tails})(?!\w)")

    def rewritten(self, text: str, *, is_python: bool) -> str:
        """The text with every reference that is certain put right."""
        if is_python:
            text = self._with_imports(text)
        for rule, new in self._rules:
            text = rule.sub(new.replace("\\", r"\\"), text)
        return text

    def doubtful(self, text: str) -> Iterator[tuple[int, str]]:
        """Lines that may name a moved file and were left alone, with their numbers."""
        for number, line in enumerate(text.splitlines(), 1):
            if self._tail.search(line):
                yield number, line.strip()

    def _with_imports(self, text: str) -> str:
        """``from parent import module`` where the module moves; and its uses, if its name changes.

        What does not parse, such as a template, has no imports to speak of.
        """
        try:
            tree = ast.parse(text)
        except SyntaxError:
            return text
        lines = text.splitlines(keepends=True)
        renamed: dict[str, str] = {}
        for node in reversed([one for one in ast.walk(tree) if isinstance(one, ast.ImportFrom)]):
            written = self._import(node, renamed)
            if written:
                indent = " " * node.col_offset
                block = f"\n{indent}".join(written)
                lines[node.lineno - 1 : node.end_lineno] = [f"{indent}{block}\n"]
        return _with_names("".join(lines), renamed)

    def _import(self, node: ast.ImportFrom, renamed: dict[str, str]) -> list[str]:
        """The statements instead of this one; none if it stays. Notes names that change."""
        here, elsewhere = [], []
        for alias in node.names:
            new = self._modules.get(f"{node.module}.{alias.name}") if not node.level else None
            if new is None:
                here.append(alias.name + (f" as {alias.asname}" if alias.asname else ""))
                continue
            parent, _, leaf = new.rpartition(".")
            known_as = f" as {alias.asname}" if alias.asname not in (None, leaf) else ""
            elsewhere.append(f"from {parent} import {leaf}{known_as}")
            if alias.asname is None and leaf != alias.name:
                renamed[alias.name] = leaf
        if not elsewhere:
            return []
        return [*([f"from {node.module} import {', '.join(here)}"] if here else []), *elsewhere]


def _with_names(text: str, renamed: Mapping[str, str]) -> str:
    """Rename what an import called otherwise.

    Raises:
        SystemExit: one of these names is also something else in this module.
    """
    if not renamed:
        return text
    lines = [line.encode() for line in text.splitlines(keepends=True)]  # columns are of bytes
    tree = ast.parse(text)
    bound = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in renamed]
    bound.update(node.id for node in names if not isinstance(node.ctx, ast.Load))
    if bound & renamed.keys():
        sys.exit(f"{', '.join(bound & renamed.keys())} is bound twice in a module: rename by hand")
    for node in sorted(names, key=lambda one: (one.lineno, one.col_offset), reverse=True):
        line, end = lines[node.lineno - 1], node.col_offset + len(node.id.encode())
        new = renamed[node.id].encode()
        lines[node.lineno - 1] = line[: node.col_offset] + new + line[end:]
    return b"".join(lines).decode()


def move(moves: list[Move], root: Path, *, dry: bool = False) -> list[str]:
    """Carry out moves in a checkout.

    Args:
        moves: what moves.
        root: the checkout.
        dry: only look.

    Returns:
        Lines for whoever called: what changed, and what is in doubt.
    """
    tracked = [name for name in _git(root, "ls-files", "-z").split("\0") if name]
    rules = Moves(moves, dict(_modules(moves, tracked)))
    changed, doubtful = 0, []
    for name in tracked:
        path = root / name
        if path.suffix not in TEXTS or not path.is_file() or path.is_symlink():
            continue
        try:
            before = path.read_text()
        except UnicodeDecodeError:
            continue
        after = rules.rewritten(before, is_python=path.suffix == ".py")
        doubtful += [f"{name}:{number}: {line}" for number, line in rules.doubtful(after)]
        if after != before:
            changed += 1
            if not dry:
                path.write_text(after)
    if not dry:
        for one in moves:
            _relocate(one, root)
    return [f"{changed} files change", *doubtful]


def _modules(moves: list[Move], tracked: list[str]) -> Iterator[tuple[str, str]]:
    for one in moves:
        yield one.old, one.new
        inside = [Path(name) for name in tracked if name.startswith(f"{one.source}/")]
        for path in (path for path in inside if path.suffix == ".py"):
            dotted = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
            yield dotted, one.new + dotted[len(one.old) :]


def _relocate(one: Move, root: Path) -> None:
    """Move the files; packages that the new name needs begin empty."""
    folder = one.target.parent
    (root / folder).mkdir(parents=True, exist_ok=True)
    while folder != Path() and not (root / folder / "__init__.py").exists():
        (root / folder / "__init__.py").touch()
        _git(root, "add", str(folder / "__init__.py"))
        folder = folder.parent
    _git(root, "mv", str(one.source), str(one.target))


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True)
    return done.stdout


def main() -> None:
    """Read the command line and move."""
    parser = argparse.ArgumentParser(prog="python -m tests.move", description=__doc__)
    parser.add_argument("--dry", action="store_true", help="change nothing")
    parser.add_argument("moves", nargs="+", metavar="old=new", help="dotted names")
    options = parser.parse_args()
    root = Path.cwd()
    moves = [Move.parse(text, root) for text in options.moves]
    print("\n".join(move(moves, root, dry=options.dry)))


if __name__ == "__main__":
    main()
