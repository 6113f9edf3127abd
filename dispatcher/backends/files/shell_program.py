"""Run by another machine's Python, and imported on this one: becomes a shell where a trial runs.

What it is to know comes in an environment variable (JSON), which goes no further. The environment
is that of the attempt's process, if it runs here; else it is put together from what the experiment
file says. The secret by which an attempt speaks is not in it: a shell is not the attempt.
"""

import glob
import json
import os
import sys

#: What the caller says, and the words to run.
TOLD = "BEQUEATH_SHELL"

#: By these a process of an attempt says that it is one; and the agent's secrets, which the trial
#: has under names of its own.
NOT_FOR_SHELLS = ("BEQUEATH_SESSION", "BEQUEATH_ATTEMPT", TOLD)
SECRETS = "BEQUEATH_SECRET_"

#: Exit codes of shells: there is no such command, or it cannot be run.
NO_COMMAND, NOT_RUNNABLE = 127, 126


class FolderGone(Exception):
    """There is nothing left of the attempt here."""


def process_environment(pid: int) -> dict:  # type: ignore[type-arg]
    """The variables that a process began with; none where that cannot be seen."""
    try:
        with open("/proc/%d/environ" % pid, "rb") as file:  # noqa: UP031
            parts = file.read().split(b"\0")
    except OSError:
        return {}
    pairs = (part.partition(b"=") for part in parts if b"=" in part)
    return {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}


def running(told: dict) -> dict:  # type: ignore[type-arg]
    """The variables of the attempt's process, if that very process runs here."""
    found = process_environment(told["pid"]) if told["pid"] else {}
    session = found.get("BEQUEATH_SESSION", "")
    expected = "/s%d.%d.json" % (told["trial"], told["attempt"])  # noqa: UP031
    if found.get("BEQUEATH_EXPERIMENT") != told["experiment"]:
        return {}  # another one has the number now
    return found if not session or session.endswith(expected) else {}


def newest_first(folder: str) -> list:  # type: ignore[type-arg]
    """What was brought here, those used last first: their times say when that was."""
    found = [x for x in glob.glob(os.path.join(glob.escape(folder), "*")) if os.path.isdir(x)]
    return sorted(found, key=os.path.getmtime, reverse=True)


def put_together(told: dict) -> dict:  # type: ignore[type-arg]
    """The variables that it would have been given."""
    made = dict(os.environ)
    made.update(told["environment"])
    paths = [made.get("PYTHONPATH", ""), *told["paths"]]
    if told["runtimes"]:
        runtimes = os.path.expanduser(told["runtimes"])
        paths += [x for x in newest_first(runtimes) if os.path.isdir(x + "/trial_runtime")][:1]
        tag = sys.implementation.cache_tag or ""
        modules = newest_first(os.path.join(os.path.dirname(runtimes), "modules", tag))
        if modules and "BEQUEATH_MODULES" not in made:
            made["BEQUEATH_MODULES"] = os.pathsep.join(modules)
    made["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    ours = os.path.dirname(sys.executable)
    found = made.get("PATH", os.defpath)
    if "VIRTUAL_ENV" not in made and ours not in found.split(os.pathsep):
        made["PATH"] = os.pathsep.join((ours, found))
    made["BEQUEATH_EXPERIMENT"] = told["experiment"]
    made["BEQUEATH_WEIGHTS_ROOT"] = os.path.expanduser(told["weights_root"])
    return made


def surroundings(told: dict) -> tuple:  # type: ignore[type-arg]
    """The variables and the folder of a shell.

    Raises:
        FolderGone: there is nothing left of the attempt.
    """
    live = running(told)
    folder = ""
    if live:
        try:
            folder = os.readlink("/proc/%d/cwd" % told["pid"])  # noqa: UP031
        except OSError:
            pass
    for other in (told["work"], told["code"], told["folder"]):
        if not os.path.isdir(folder):
            folder = os.path.expanduser(other) if other else ""
    if not os.path.isdir(folder):
        raise FolderGone(told["work"] or told["folder"])
    made = live or put_together(told)
    kept = {k: v for k, v in made.items() if k not in NOT_FOR_SHELLS and not k.startswith(SECRETS)}
    for name in ("TERM", "COLORTERM", "LANG"):  # those of whoever looks, not of the agent
        if name in os.environ:
            kept[name] = os.environ[name]
    kept["PWD"] = folder
    return kept, folder


def words_of(command: list, environment: dict) -> list:  # type: ignore[type-arg]
    """What to run: a shell, if nothing is said."""
    return list(command) or [environment.get("SHELL") or "/bin/sh"]


def main() -> int:
    """Become the command."""
    told = json.loads(os.environ.pop(TOLD))
    try:
        environment, folder = surroundings(told)
    except FolderGone as error:
        sys.stderr.write("bequeath: nothing is left of this attempt: no %s\n" % error)  # noqa: UP031
        return NOT_RUNNABLE
    os.chdir(folder)
    words = words_of(told["command"], environment)
    try:
        os.execvpe(words[0], words, environment)  # noqa: S606 - the user's own words, and no shell
    except OSError as error:
        sys.stderr.write("bequeath: %s: %s\n" % (words[0], error.strerror))  # noqa: UP031
        return NO_COMMAND if isinstance(error, FileNotFoundError) else NOT_RUNNABLE


if __name__ == "__main__":
    sys.exit(main())
