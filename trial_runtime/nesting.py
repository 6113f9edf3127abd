"""The depth of a process in other experiments, and whether it is importing the author's code.

An experiment's processes import the author's modules. A script that starts an experiment as it
is imported would start another one there, whose trials start more: one file fills a machine.
Both marks are environment variables, so that programs that such a process starts have them, too.

Imports only what a fresh trial can afford.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from types import FrameType
from typing import Optional

#: Names what is being imported, for as long as it is.
IMPORTING_VARIABLE = "BEQUEATH_IMPORTING"

#: How many experiments a process is inside of: none, one for a trial or a tuner.
DEPTH_VARIABLE = "BEQUEATH_NESTED"

#: A trial may run an experiment of its own; a trial of that one may not.
MOST_NESTED = 1

_imports_here = 0  # that this process does; it may have inherited the name of another one's

_GUARD = "put that under `if __name__ == '__main__':`"


@contextmanager
def importing(name: str) -> Iterator[None]:
    """Refuse any experiment that is started inside, here or in a program started here."""
    global _imports_here
    before = os.environ.get(IMPORTING_VARIABLE)
    os.environ[IMPORTING_VARIABLE] = name
    _imports_here += 1
    try:
        yield
    finally:
        _imports_here -= 1
        if before is None:
            os.environ.pop(IMPORTING_VARIABLE, None)
        else:
            os.environ[IMPORTING_VARIABLE] = before


def mark_inside(environment: MutableMapping[str, str]) -> None:
    """Mark the environment of a trial or a tuner as one experiment deeper."""
    environment[DEPTH_VARIABLE] = str(_depth(environment) + 1)


def refusal() -> str:
    """The reason why no experiment may be started in this process; empty if one may."""
    name = os.environ.get(IMPORTING_VARIABLE, "")
    if _imports_here or _is_imported_by_multiprocessing():
        starter = _module_being_run(sys._getframe(1)) or name or "the script"
        return f"{starter} starts an experiment when it is imported: {_GUARD}"
    if name:  # of the process that started this program
        return f"an experiment is started while {name} is imported: {_GUARD}"
    if _depth(os.environ) > MOST_NESTED:
        return (
            "this experiment would be inside a trial of an experiment that is itself inside a "
            "trial: a trial must not start the experiment that it belongs to"
        )
    return ""


def _depth(environment: MutableMapping[str, str]) -> int:
    text = environment.get(DEPTH_VARIABLE, "")
    return int(text) if text.isdecimal() else 0


def _is_imported_by_multiprocessing() -> bool:
    """Whether ``multiprocessing`` has just spawned this process, which imports the script again.

    That library refuses to start processes then. Ours are not started by it, so they need the
    question.
    """
    module = sys.modules.get("multiprocessing.process")
    if module is None:
        return False
    return bool(getattr(module.current_process(), "_inheriting", False))


def _module_being_run(frame: Optional[FrameType]) -> str:
    """The file whose top level called us, if one did; ours do not count."""
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if frame.f_code.co_name == "<module>" and not _is_ours(module):
            return os.path.basename(frame.f_code.co_filename)
        frame = frame.f_back
    return ""


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] in ("bequeath", "dispatcher", "trial_runtime", "tuners")
