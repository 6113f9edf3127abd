"""Files of attempts, listed and read where they lie: by agents, by us for those of this machine,
and by a program of the verb ``files`` on others (``dispatcher/remote_python/bundle.py`` packs it,
so it imports the standard library alone).

Of the program each line of stdin is a question (JSON), each answer a line (JSON) with the number
of bytes that follow it. It ends with its stdin. Names that are no UTF-8 travel as surrogates. No
link is followed below the folders that a question names, whoever puts one there and when.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import stat
import sys
from typing import Any

#: A file of an attempt's output: a stream, that of one of several nodes, or an older part of it.
_OUTPUT = re.compile(r"((?:stdout|stderr)(?:\.rank[0-9]+)?)(?:\.[0-9]+)?")

#: Folders looked into for one list, and one below the other: a hostile tree must end somewhere.
MOST_FOLDERS = 10000
MOST_DEPTH = 100

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def is_stream(name: str) -> bool:
    """Whether it is a log or an older part of one."""
    return bool(stream_of(name))


def stream_of(name: str) -> str:
    """The stream that a file is a part of; empty if it is none."""
    match = _OUTPUT.fullmatch(name)
    return match[1] if match else ""


def place_of(folders: dict[str, str], path: str) -> tuple[str, list[str]]:
    """The folder that a path lies below, and the names from there on; none if it is no path of
    ours. ``folders``: those of the attempt, as :meth:`Whereabouts.for_files` has them."""
    names = path.split("/")
    if any(name in ("", ".", "..") or "\0" in name for name in names):
        return "", []
    if names[0] == "work":
        return folders["work"], names[1:]
    if names[0] == "checkpoints":
        return folders["checkpoints"], names[1:]
    if names[0] == "artefacts" or (len(names) == 1 and is_stream(names[0])):
        return folders["folder"], names
    return "", []


def opened(root: str, names: list[str]) -> int:
    """A descriptor of the folder, or of the one below it that the names lead to."""
    at = os.open(os.path.expanduser(root), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for name in names:
        try:
            below = os.open(name, _FOLDER, dir_fd=at)
        finally:
            os.close(at)
        at = below
    return at


def version_of(info: os.stat_result) -> str:
    """A text that differs whenever the content may."""
    return f"{info.st_ino}-{info.st_size}-{info.st_mtime_ns}"


def listed(folders: dict[str, str], below: str, most: int) -> dict[str, Any]:
    """All files, or those in a folder; of a stream, its parts.

    Args:
        folders: of the attempt.
        below: the folder or the stream; empty for all.
        most: how many files at most.
    """
    files: list[list[Any]] = []
    left = [MOST_FOLDERS]
    tops = [below] if below else ["", "artefacts", "checkpoints", "work"]
    cut = False
    of_stream = bool(below) and stream_of(below) == below
    if of_stream:
        tops = [""]
    for top in tops:
        root, names = place_of(folders, top) if top else (folders["folder"], [])
        if not root:
            continue
        try:
            at = opened(root, names)
        except OSError:
            continue  # it has none
        cut = _look_into(at, top, files, most, left) or cut
    if of_stream:
        files = [each for each in files if stream_of(each[0]) == below]
    return {"files": files, "cut": cut}


def _look_into(at: int, path: str, files: list[list[Any]], most: int, left: list[int]) -> bool:
    """Append the files of an open folder, which is closed; returns whether there is more."""
    left[0] -= 1
    folders = []
    try:
        with os.scandir(at) as entries:
            names = sorted(entry.name for entry in itertools.islice(entries, most + 1))
        cut = len(names) > most
        for name in names[:most]:
            try:
                info = os.stat(name, dir_fd=at, follow_symlinks=False)
            except OSError:
                continue  # gone meanwhile
            if stat.S_ISDIR(info.st_mode):
                folders.append(name)
            elif path or is_stream(name):
                link = not stat.S_ISREG(info.st_mode)
                if len(files) >= most:
                    return True
                whole = path + "/" + name if path else name
                files.append([whole, info.st_size, info.st_mtime, version_of(info), link])
        for name in folders if path else []:
            if left[0] <= 0 or len(files) >= most or path.count("/") >= MOST_DEPTH:
                return True
            try:
                inner = os.open(name, _FOLDER, dir_fd=at)
            except OSError:
                continue
            cut = _look_into(inner, path + "/" + name, files, most, left) or cut
        return cut
    finally:
        os.close(at)


def piece(
    folders: dict[str, str], path: str, offset: int, limit: int
) -> tuple[dict[str, Any], bytes]:
    """Facts of a file, and a part of its content; nothing if there is no such file.

    Args:
        folders: of the attempt.
        path: of the file, below them.
        offset: where the part begins (bytes).
        limit: how many bytes at most.
    """
    root, names = place_of(folders, path)
    if not root or not names:
        return {}, b""
    try:
        at = opened(root, names[:-1])
        try:
            descriptor = os.open(names[-1], _FILE, dir_fd=at)
        finally:
            os.close(at)
    except FileNotFoundError:
        return {}, b""
    with open(descriptor, "rb", buffering=0) as file:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode):
            return {}, b""
        data = bytearray()
        file.seek(offset)
        while len(data) < limit:
            part = file.read(limit - len(data))
            if not part:
                break
            data += part
        info = os.fstat(descriptor)  # as of the end of reading: what changed meanwhile is seen
    facts = {"size": info.st_size, "version": version_of(info), "identity": str(info.st_ino)}
    return facts, bytes(data)


def answer(question: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    """Answer one question."""
    try:
        if question["ask"] == "list":
            body = json.dumps(listed(question["folders"], question["below"], question["most"]))
            return {}, body.encode()
        if question["ask"] == "there":
            return {"there": os.path.isdir(os.path.expanduser(question["folder"]))}, b""
        part = (question["path"], question["offset"], question["limit"])
        return piece(question["folders"], *part)
    except OSError as error:
        return {"error": error.strerror or str(error)}, b""


def main() -> int:
    """Answer all questions of stdin."""
    for line in sys.stdin.buffer:
        head, data = answer(json.loads(line.decode()))
        head["bytes"] = len(data)
        sys.stdout.buffer.write(json.dumps(head).encode() + b"\n" + data)
        sys.stdout.buffer.flush()
    return 0
