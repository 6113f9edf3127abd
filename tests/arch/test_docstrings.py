"""Docstrings are true where a program can tell: their examples run, what they point to is there."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.arch.trees import nodes_of

ROOT = Path(__file__).parents[2]
PACKAGES = ("bequeath", "dispatcher", "nfs_setup", "trial_runtime", "tuners")

#: A user's own files, which docstrings speak of.
OF_USERS = {
    ("dispatcher/__init__.py", "tuners.py"),
    ("dispatcher/tuner_host/user_folder.py", "dispatcher.py"),
    ("dispatcher/tuner_host/user_folder.py", "utils.py"),
}

_FILE = re.compile(r"`([\w/]+\.py)`")
_REFERENCE = re.compile(rf":\w+:`~?((?:{'|'.join(PACKAGES)})(?:\.\w+)+)`")

#: Each in a process and a folder of its own: some write weights, one is a trial by hand.
_PROGRAM = """
import doctest, importlib, sys
found = doctest.testmod(importlib.import_module(sys.argv[1]))
sys.exit("no example" if not found.attempted else found.failed)
"""


@pytest.mark.parametrize(
    "module", ["dispatcher.api", "tuners.base", "trial_runtime", "trial_runtime.weights"]
)
def test_examples_in_docstrings(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("BEQUEATH_HOME", str(tmp_path / "experiments"))
    monkeypatch.delenv("BEQUEATH_PARAMETERS", raising=False)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", _PROGRAM, module],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_files_that_a_docstring_sends_its_reader_to_are_there() -> None:
    """Mutation: a module moves into a room of its own, and "read it first" stays."""
    gone = [
        f"{path}: {name}"
        for path, text in docstrings()
        for name in _FILE.findall(text)
        if (path, name) not in OF_USERS and not _is_near(ROOT / path, name, text)
    ]
    assert not gone, "\n".join(gone)


def test_what_a_docstring_refers_to_is_there() -> None:
    """Mutation: a class moves, and references by its whole name stay."""
    gone = [
        f"{path}: {name}"
        for path, text in docstrings()
        for name in _REFERENCE.findall(text)
        if not _is_defined(name)
    ]
    assert not gone, "\n".join(gone)


@cache
def docstrings() -> tuple[tuple[str, str], ...]:
    """Every docstring of the product, with the module it is in."""
    return tuple(
        (path.relative_to(ROOT).as_posix(), text)
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        for text in _texts(path.read_text())
    )


def _texts(module: str) -> Iterator[str]:
    for node in nodes_of(module):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield text


def _is_near(module: Path, name: str, text: str) -> bool:
    """Whether the file lies beside the module, in its package, at the root or by another one."""
    folders = {(module.parent / other).parent for other in _FILE.findall(text)}
    package = ROOT / module.relative_to(ROOT).parts[0]
    return any((folder / name).is_file() for folder in (module.parent, package, ROOT, *folders))


def _is_defined(name: str) -> bool:
    """Whether there is a module of that name, or one that has what the next part names."""
    parts = name.split(".")
    for many in range(len(parts), 0, -1):
        place = ROOT.joinpath(*parts[:many])
        file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        if file.is_file():
            defined, text = parts[many:][:1], file.read_text()
            return not defined or re.search(rf"\b{defined[0]}\b", text) is not None
    return False
