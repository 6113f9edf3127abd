"""The program that unpacks code on a machine: all of it arrives, or nothing does."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from dispatcher.code_archive import pack_code, scan_code
from dispatcher.remote_python.bundle import our_programs

CHUNK = 1 << 20
COPIED = 64 << 10


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """Headers and files lie across all the borders between what is read at a time."""
    folder = tmp_path / "code"
    for number, size in enumerate(_sizes()):
        path = folder / f"package{number % 3}" / f"file{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(hashlib.shake_128(b"%d" % number).digest(size))
    (folder / "package1" / ("name" * 50)).write_bytes(b"a header of more than one block")
    (folder / "link").symlink_to("package0/file0")
    return folder


def _sizes() -> Iterator[int]:
    for border in (0, 512, COPIED, CHUNK, 2 * CHUNK):
        for more in (-1, 0, 1):
            if border + more >= 0:
                yield border + more
    # A header somewhere in the last kilobyte of a chunk, and right at its end.
    yield from (CHUNK - 512 * blocks for blocks in range(1, 5))


def packed(code: Path) -> tuple[Path, str]:
    archive = code.with_name("archive")
    return archive, pack_code(scan_code(code), archive).digest


def head_of(there: Path, digest: str) -> bytes:
    """What goes before the archive: the code, and its arguments."""
    arguments = json.dumps({"folder": str(there), "digest": digest}).encode()
    return our_programs().code + arguments + b"\n"


def run(there: Path, digest: str, stdin: bytes | IO[bytes]) -> dict[str, str]:
    argv = [sys.executable, *our_programs().arguments("unpack")]
    head = head_of(there, digest)
    if isinstance(stdin, bytes):
        ran = subprocess.run(argv, input=head + stdin, capture_output=True, timeout=300)
    else:
        ran = subprocess.run(argv, stdin=stdin, capture_output=True, timeout=300)
    assert ran.returncode == 0, ran.stderr.decode()
    answer: dict[str, str] = json.loads(ran.stdout)
    return answer


@pytest.mark.parametrize("by", ["pipe", "file"])
def test_files_of_all_sizes_arrive_as_they_were(code: Path, tmp_path: Path, by: str) -> None:
    """Mutations: the rest of a chunk is left out; a seek stops early."""
    archive, digest = packed(code)
    there = tmp_path / "host" / "code"
    if by == "file":
        whole = tmp_path / "whole"
        whole.write_bytes(head_of(there, digest) + archive.read_bytes())
        with whole.open("rb") as file:
            assert run(there, digest, file) == {"state": "unpacked"}
    else:
        assert run(there, digest, archive.read_bytes()) == {"state": "unpacked"}
    for path in code.rglob("*"):
        if path.is_file() and not path.is_symlink():
            assert (there / path.relative_to(code)).read_bytes() == path.read_bytes(), path
    assert pack_code(scan_code(there), tmp_path / "again").digest == digest
    assert os.listdir(there.parent) == ["code"]


def test_an_archive_that_ends_early_leaves_nothing(code: Path, tmp_path: Path) -> None:
    archive, digest = packed(code)
    content = archive.read_bytes()
    for size in (0, 100, 512, CHUNK, CHUNK + 1, len(content) // 2, len(content) - 1):
        answer = run(tmp_path / "host" / "code", digest, content[:size])
        assert answer["error"] == "EBADMSG", size
        assert os.listdir(tmp_path / "host") == [], size


def test_each_byte_counts_also_behind_the_end(code: Path, tmp_path: Path) -> None:
    """Mutation: only what was unpacked is in the digest."""
    archive, digest = packed(code)
    content = archive.read_bytes()
    for place in (700, CHUNK - 1, CHUNK, len(content) - 1):
        other = bytearray(content)
        other[place] ^= 1
        answer = run(tmp_path / "host" / "code", digest, bytes(other))
        assert answer["error"] == "EBADMSG", place
    more = content + b"x" * (CHUNK + 1)
    assert run(tmp_path / "host" / "code", digest, more)["error"] == "EBADMSG"
    assert os.listdir(tmp_path / "host") == []
    whole = hashlib.sha256(more).hexdigest()
    assert run(tmp_path / "host" / "code", whole, more) == {"state": "unpacked"}


@pytest.mark.skipif(sys.platform != "linux", reason="pipes have a size of their own on Linux only")
def test_its_pipe_holds_what_it_reads_at_a_time(tmp_path: Path) -> None:
    """Mutation: sshd is woken for each 64 KiB."""
    (tmp_path / "code").mkdir()
    archive, digest = packed(tmp_path / "code")
    there = tmp_path / "host" / "code"
    read, write = os.pipe()
    with os.fdopen(read, "rb") as theirs:
        with os.fdopen(write, "wb") as ours:
            before = fcntl.fcntl(ours, fcntl.F_GETPIPE_SZ)
            try:
                fcntl.fcntl(ours, fcntl.F_SETPIPE_SZ, CHUNK)
            except OSError as error:
                pytest.skip(f"may have no larger pipe: {error.strerror}")
            fcntl.fcntl(ours, fcntl.F_SETPIPE_SZ, before)
            # Less than a pipe holds.
            ours.write(head_of(there, digest) + archive.read_bytes())
        assert run(there, digest, theirs) == {"state": "unpacked"}
        assert fcntl.fcntl(theirs, fcntl.F_GETPIPE_SZ) == CHUNK
