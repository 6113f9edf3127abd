"""Programs of :mod:`dispatcher.ssh.on_host`, run on a machine by its own Python."""

from __future__ import annotations

import importlib.resources
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

from dispatcher.ssh.connection import SshConnection
from dispatcher.ssh.errors import HostDiskFull, NoPython, TransferFailed

_NO_SPACE = {"ENOSPC", "EDQUOT"}

#: What programs begin with: another one's functions.
_BEGINNINGS = {"probe": "python_facts", "unpack": "placing", "unwheel": "placing"}


def program_text(name: str) -> str:
    """What ``on_host/<name>.py`` says, behind what it needs of another one."""
    folder = importlib.resources.files("dispatcher.ssh.on_host")
    names = [_BEGINNINGS[name], name] if name in _BEGINNINGS else [name]
    return "\n".join(folder.joinpath(f"{each}.py").read_text() for each in names)


def run_program(
    connection: SshConnection,
    name: str,
    words: Sequence[str],
    *,
    python: str | Sequence[str] = "python3",
    alone: bool = True,
    stdin: bytes | BinaryIO = b"",
    limit_s: float,
) -> dict[str, Any]:
    """Run ``on_host/<name>.py`` there; returns what it says.

    Args:
        connection: to the machine.
        name: of the program.
        words: its arguments.
        python: by which words a Python is called there.
        alone: nothing in a working directory, a user's site or PYTHONPATH takes the place of a
            module. False for a program that is to see the modules that trials see.
        stdin: what it reads.
        limit_s: after so long it is ended (seconds).

    Raises:
        NoPython: there is none by that name, or it is too old.
        ConnectionLost, CommandTimedOut, SessionRefused: see there.
    """
    text = program_text(name)
    called = [python] if isinstance(python, str) else list(python)
    argv = [*called, *(["-I"] if alone else []), "-c", text, *words]
    ran = connection.run(argv, stdin=stdin, limit_s=limit_s)
    try:
        answer = json.loads(ran.out.splitlines()[-1])
    except (IndexError, ValueError, RecursionError):
        answer = None
    if ran.ok and isinstance(answer, dict):
        return answer
    said = ran.complaint().splitlines()[-1:]
    raise NoPython(
        f"{called[-1]} runs no program of ours: {said[0] if said else f'exit code {ran.code}'}",
        hint="Python 3.9 or later must be there; name it (python: /opt/…/bin/python3)",
        where=connection.label,
    )


def unpack(
    connection: SshConnection,
    archive: Path,
    digest: str,
    folder: str,
    *,
    python: str | Sequence[str] = "python3",
    limit_s: float = 3600,
) -> bool:
    """Send an archive and unpack it into ``folder``, which appears whole or not at all.

    Several may do the same at once. Returns False if the folder was there already; then
    nothing is sent. ``~`` stands for the home folder there.

    Raises:
        HostDiskFull: no room there; nothing is left behind.
        TransferFailed: the folder cannot be written, or what arrived is damaged.
        NoPython, ConnectionLost, CommandTimedOut, SessionRefused: see there.
    """
    return _unpack(connection, "unpack", archive, digest, folder, python, limit_s)


def unpack_wheel(
    connection: SshConnection,
    wheel: Path,
    digest: str,
    folder: str,
    *,
    python: str | Sequence[str] = "python3",
    limit_s: float = 3600,
) -> bool:
    """As :func:`unpack` for a wheel, whose digest is looked at again there before it is used."""
    return _unpack(connection, "unwheel", wheel, digest, folder, python, limit_s)


def _unpack(
    connection: SshConnection,
    program: str,
    archive: Path,
    digest: str,
    folder: str,
    python: str | Sequence[str],
    limit_s: float,
) -> bool:
    found = connection.stat(folder)
    if found is not None and found.is_folder:
        return False
    with archive.open("rb") as file:
        answer = run_program(
            connection, program, [folder, digest], python=python, stdin=file, limit_s=limit_s
        )
    if "error" not in answer:
        return answer.get("state") == "unpacked"
    place = f"{connection.label}:{folder}"
    if answer["error"] in _NO_SPACE:
        raise HostDiskFull("no space left there for the code", where=place)
    raise TransferFailed(f"the code cannot be unpacked: {answer.get('text')}", where=place)
