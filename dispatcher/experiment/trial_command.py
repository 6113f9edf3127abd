"""Check whether a trial command can start at all, as far as that is known without running it."""

from __future__ import annotations

import difflib
import os
import re
import shutil
from pathlib import Path

# Only words that no shell would read otherwise: no quotes, variables, globs, redirections.
_PLAIN = re.compile(r"[A-Za-z0-9_./+,@:~-]+")
_PYTHON = re.compile(r"python[0-9.]*")
_SHELL_WORDS = frozenset(
    re.split(
        r"\s+",
        """. : [ alias bg bind break builtin case cd command continue coproc declare dirs disown do
        done echo elif else enable esac eval exec exit export false fc fg fi for function getopts
        hash help history if in jobs kill let local logout mapfile popd printf pushd pwd read
        readarray readonly return select set shift shopt source suspend test then time times trap
        true type typeset ulimit umask unalias unset until wait while""",
    )
)


def cannot_start(command: str, folder: Path, search_path: str | None) -> tuple[str, str] | None:
    """Say why a command cannot start, as sentence and hint; None if it may.

    Args:
        command: text for ``bash -c``; looked at only where its first word is a plain one.
        folder: the folder it runs in.
        search_path: the ``PATH`` of trials; None for that of this process.
    """
    parts = command.split()
    if not parts:
        return "is empty", "write what a trial runs, e.g. 'python trial.py'"
    first = parts[0]
    if not _PLAIN.fullmatch(first) or first in _SHELL_WORDS or first.endswith(":"):
        return None
    if "/" in first:
        return _check_path(first, folder)
    path = search_path if search_path is not None else os.environ.get("PATH", os.defpath)
    if shutil.which(first, path=path) is None:
        near = difflib.get_close_matches(first, ["python", "python3", *_programs(path)], 1, 0.7)
        program = next((name for name in near if shutil.which(name, path=path)), None)
        guess = f"; did you mean {program!r}?" if program else ""
        local = folder / first
        hint = (
            f"write './{first}' to run the one in the code directory"
            if os.path.exists(local)
            else ""
        )
        return f"starts with {first!r}, and there is no such command{guess}", hint
    return _check_script(parts, folder)


def _check_path(word: str, folder: Path) -> tuple[str, str] | None:
    path = folder / os.path.expanduser(word)
    if not os.path.exists(path):
        return f"starts with {word!r}, and there is no such file in {folder}", ""
    if os.path.isdir(path) or not os.access(path, os.X_OK):
        hint = f"run 'chmod +x {path}', or put the interpreter in front: 'python {word}'"
        return f"starts with {word!r}, which is not executable", hint
    return None


def _check_script(parts: list[str], folder: Path) -> tuple[str, str] | None:
    """Check the script of ``python trial.py …``."""
    if len(parts) < 2 or not _PYTHON.fullmatch(parts[0]):
        return None
    script = parts[1]
    if not _PLAIN.fullmatch(script) or not script.endswith(".py"):
        return None
    if os.path.exists(folder / os.path.expanduser(script)):
        return None
    there = sorted(path.name for path in folder.glob("*.py"))
    near = difflib.get_close_matches(script, there, 1)
    guess = f"; did you mean {near[0]!r}?" if near else ""
    return (
        f"runs {script!r}, and there is no such file in {folder}{guess}",
        "the path counts from 'trialCodeDirectory'",
    )


def _programs(path: str) -> list[str]:
    names: set[str] = set()
    for folder in path.split(os.pathsep):
        try:
            names.update(os.listdir(folder or "."))
        except OSError:
            continue
    return sorted(names)
