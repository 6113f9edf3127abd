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

#: Programs that begin with another one's functions.
_BEGINNINGS = {"probe": "python_facts", "unpack": "placing", "unwheel": "placing"}


def program_text(name: str) -> str:
    """The text of ``on_host/<name>.py``, behind that of the program whose functions it needs."""
    folder = importlib.resources.files("dispatcher.ssh.on_host")
    names = [_BEGINNINGS[name], name] if name in _BEGINNINGS else [name]
    return "\n".join(folder.joinpath(f"{each}.py").read_text() for each in names)


def run_program(
    connection: SshConnection,
    name: str,
    arguments: Sequence[str],
    *,
    python: str | Sequence[str] = "python3",
    alone: bool = True,
    stdin: bytes | BinaryIO = b"",
    limit_s: float,
) -> dict[str, Any]:
    """Run ``on_host/<name>.py`` there; returns its answer.

    Args:
        connection: to the machine.
        name: of the program.
        arguments: of the program.
        python: the command by which a Python is called there.
        alone: nothing in a working directory, a user's site or PYTHONPATH takes the place of a
            module. False for a program that is to see the modules that trials see.
        stdin: its input.
        limit_s: seconds after which it is ended.

    Raises:
        NoPython: there is none by that name, or it is too old.
        ConnectionLost, CommandTimedOut, SessionRefused: see there.
    """
    text = program_text(name)
    called = [python] if isinstance(python, str) else list(python)
    argv = [*called, *(["-I"] if alone else []), "-c", text, *arguments]
    ran = connection.run(argv, stdin=stdin, limit_s=limit_s)
    try:
        answer = json.loads(ran.out.splitlines()[-1])
    except (IndexError, ValueError, RecursionError):
        answer = None
    if ran.ok and isinstance(answer, dict):
        return answer
    complaint = ran.complaint().splitlines()[-1:]
    reason = complaint[0] if complaint else f"exit code {ran.code}"
    raise NoPython(
        f"{called[-1]} runs no program of ours: {reason}",
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
    nothing is sent.

    Args:
        connection: to the machine.
        archive: a tar file here.
        digest: SHA-256 of its content, in hex.
        folder: the one to make there; ``~`` stands for the home folder.
        python: the command by which a Python is called there.
        limit_s: seconds for all.

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
    """Send a wheel and unpack it, as :func:`unpack` does; its digest is checked before that.

    Args:
        connection: to the machine.
        wheel: a wheel file here.
        digest: SHA-256 of its content, in hex.
        folder: the one to make there; ``~`` stands for the home folder.
        python: the command by which a Python is called there.
        limit_s: seconds for all.
    """
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
    there = connection.stat(folder)
    if there is not None and there.is_folder:
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
