"""Code on a real sshd."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dispatcher.code_archive import pack_code, scan_code
from dispatcher.remote_python.errors import HostDiskFull, NoPython, TransferFailed
from dispatcher.remote_python.runner import RemotePython
from dispatcher.remote_python.unpacking import unpack
from dispatcher.ssh import (
    SshConnection,
    connect,
)
from tests.support import sshd


def python_on(connection: SshConnection, python: str = sys.executable) -> RemotePython:
    return RemotePython(connection, lambda *rest: [python, *rest], "box", python)


@pytest.fixture
def code(tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    (folder / "package").mkdir(parents=True)
    (folder / "package" / "model.py").write_text("x = 1\n")
    (folder / "train.sh").write_text("#!/bin/sh\n")
    (folder / "train.sh").chmod(0o700)
    (folder / "link").symlink_to("package/model.py")
    return folder


def test_code_is_sent_to_a_server_without_sftp(code: Path, tmp_path: Path) -> None:
    packed = pack_code(scan_code(code), tmp_path / "archive")
    with (
        sshd.running(tmp_path / "plain", "Subsystem sftp /nowhere/sftp-server\n") as server,
        connect(server.target()) as made,
    ):
        assert unpack(python_on(made), tmp_path / "archive", packed.digest, str(tmp_path / "x"))


def test_code_is_sent_once_and_is_the_same_there(
    connection: SshConnection, code: Path, tmp_path: Path
) -> None:
    packed = pack_code(scan_code(code), tmp_path / "archive")
    there = tmp_path / "host" / packed.digest
    send = (python_on(connection), tmp_path / "archive", packed.digest, str(there))
    assert unpack(*send) is True
    assert unpack(*send) is False
    assert os.access(there / "train.sh", os.X_OK)
    assert (there / "link").readlink() == Path("package/model.py")
    assert pack_code(scan_code(there), tmp_path / "again").digest == packed.digest
    assert os.listdir(there.parent) == [packed.digest]


def test_many_send_the_same_code(connection: SshConnection, code: Path, tmp_path: Path) -> None:
    packed = pack_code(scan_code(code), tmp_path / "archive")
    there = tmp_path / "host" / "code"

    def send(_: int) -> bool:
        archive = tmp_path / "archive"
        return unpack(python_on(connection), archive, packed.digest, str(there))

    with ThreadPoolExecutor(4) as pool:
        sent = list(pool.map(send, range(4)))
    assert sent.count(True) == 1
    assert os.listdir(there.parent) == ["code"]


def test_damaged_code_never_appears(connection: SshConnection, code: Path, tmp_path: Path) -> None:
    pack_code(scan_code(code), tmp_path / "archive")
    place = str(tmp_path / "host" / "code")
    with pytest.raises(TransferFailed, match="damaged"):
        unpack(python_on(connection), tmp_path / "archive", "0" * 64, place)
    assert os.listdir(tmp_path / "host") == []


def test_no_python_there(connection: SshConnection, code: Path, tmp_path: Path) -> None:
    packed = pack_code(scan_code(code), tmp_path / "archive")
    python = python_on(connection, "python9.9")
    with pytest.raises(NoPython, match=r"has no 'python9\.9'"):
        unpack(python, tmp_path / "archive", packed.digest, str(tmp_path / "x"))


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a small disk")
def test_a_full_disk_there_is_named_and_left_as_it_was(
    connection: SshConnection, tmp_path: Path
) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(small)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip(f"may not mount: {mounted.stderr.decode().strip()}")
    try:
        (tmp_path / "code").mkdir()
        (tmp_path / "code" / "big").write_bytes(b"x" * (5 << 20))
        packed = pack_code(scan_code(tmp_path / "code"), tmp_path / "archive")
        place = str(small / "code")
        with pytest.raises(HostDiskFull, match="no space left"):
            unpack(python_on(connection), tmp_path / "archive", packed.digest, place)
        assert os.listdir(small) == []
        (small / "little").write_bytes(b"x")
    finally:
        subprocess.run(["umount", "--lazy", str(small)], check=True)
