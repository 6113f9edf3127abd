"""The verb ``shell``: becomes a shell where a trial runs. Imported by us for those of this machine.

The whereabouts of the attempt come in an environment variable (JSON), which goes no further. The
environment is that of the attempt's process, if it runs here; else it is put together from what
the experiment file says. The secret of the attempt is not in it: a shell is not the attempt.
"""

from __future__ import annotations

import glob
import json
import os
import sys
from typing import Any

#: The environment variable with the attempt's whereabouts, and the command to run.
VARIABLE = "BEQUEATH_SHELL"

#: Variables by which a process of an attempt is known; and the agent's secrets, which the trial has
#: under names of its own.
NOT_FOR_SHELLS = ("BEQUEATH_SESSION", "BEQUEATH_ATTEMPT", VARIABLE)
SECRETS = "BEQUEATH_SECRET_"

#: Exit codes of shells: there is no such command, or it cannot be run.
NO_COMMAND, NOT_RUNNABLE = 127, 126


class FolderGone(Exception):
    """Raised when there is nothing left of the attempt here."""


def process_environment(pid: int) -> dict[str, str]:
    """The variables that a process began with; none where that cannot be seen."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            parts = file.read().split(b"\0")
    except OSError:
        return {}
    pairs = (part.partition(b"=") for part in parts if b"=" in part)
    return {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}


def running(whereabouts: dict[str, Any]) -> dict[str, str]:
    """The variables of the attempt's process, if that very process runs here."""
    variables = process_environment(whereabouts["pid"]) if whereabouts["pid"] else {}
    session = variables.get("BEQUEATH_SESSION", "")
    expected = f"/s{whereabouts['trial']}.{whereabouts['attempt']}.json"
    if variables.get("BEQUEATH_EXPERIMENT") != whereabouts["experiment"]:
        return {}  # another one has the number now
    return variables if not session or session.endswith(expected) else {}


def newest_first(folder: str) -> list[str]:
    """Folders that were brought here, those used last first: their times say when that was."""
    below = [x for x in glob.glob(os.path.join(glob.escape(folder), "*")) if os.path.isdir(x)]
    return sorted(below, key=os.path.getmtime, reverse=True)


def put_together(whereabouts: dict[str, Any]) -> dict[str, str]:
    """The variables that the attempt would have got."""
    made = dict(os.environ)
    made.update(whereabouts["environment"])
    paths = [made.get("PYTHONPATH", "")]
    if whereabouts["runtimes"]:
        runtimes = os.path.expanduser(whereabouts["runtimes"])
        ours = [x for x in newest_first(runtimes) if os.path.isdir(x + "/trial_runtime")][:1]
        paths += ours + [x + "/trial_runtime/beside" for x in ours]
        tag = sys.implementation.cache_tag or ""
        modules = newest_first(os.path.join(os.path.dirname(runtimes), "modules", tag))
        if modules and "BEQUEATH_MODULES" not in made:
            made["BEQUEATH_MODULES"] = os.pathsep.join(modules)
    made["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    python = os.path.dirname(sys.executable)
    before = made.get("PATH", os.defpath)
    if "VIRTUAL_ENV" not in made and python not in before.split(os.pathsep):
        made["PATH"] = os.pathsep.join((python, before))
    made["BEQUEATH_EXPERIMENT"] = whereabouts["experiment"]
    made["BEQUEATH_WEIGHTS_ROOT"] = os.path.expanduser(whereabouts["weights_root"])
    return made


def surroundings(whereabouts: dict[str, Any]) -> tuple[dict[str, str], str]:
    """The variables and the folder of a shell.

    Raises:
        FolderGone: there is nothing left of the attempt.
    """
    live = running(whereabouts)
    folder = ""
    if live:
        try:
            folder = os.readlink(f"/proc/{whereabouts['pid']}/cwd")
        except OSError:
            pass
    for other in (whereabouts["work"], whereabouts["code"], whereabouts["folder"]):
        if not os.path.isdir(folder):
            folder = os.path.expanduser(other) if other else ""
    if not os.path.isdir(folder):
        raise FolderGone(whereabouts["work"] or whereabouts["folder"])
    made = live or put_together(whereabouts)
    kept = {k: v for k, v in made.items() if k not in NOT_FOR_SHELLS and not k.startswith(SECRETS)}
    for name in ("TERM", "COLORTERM", "LANG"):  # the user's, not the agent's
        if name in os.environ:
            kept[name] = os.environ[name]
    kept["PWD"] = folder
    return kept, folder


def command_line(command: list[str], environment: dict[str, str]) -> list[str]:
    """The command to run: a shell, if there is none."""
    return list(command) or [environment.get("SHELL") or "/bin/sh"]


def main() -> int:
    """Become the command."""
    whereabouts = json.loads(os.environ.pop(VARIABLE))
    try:
        environment, folder = surroundings(whereabouts)
    except FolderGone as error:
        sys.stderr.write(f"bequeath: nothing is left of this attempt: no {error}\n")
        return NOT_RUNNABLE
    os.chdir(folder)
    argv = command_line(whereabouts["command"], environment)
    try:
        os.execvpe(argv[0], argv, environment)  # noqa: S606 - the user's own command, and no shell
    except OSError as error:
        sys.stderr.write(f"bequeath: {argv[0]}: {error.strerror}\n")
        return NO_COMMAND if isinstance(error, FileNotFoundError) else NOT_RUNNABLE
