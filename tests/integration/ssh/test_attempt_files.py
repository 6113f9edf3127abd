"""The door to files on a machine behind SSH: a hostile machine, an unwilling one, a slow reader."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dispatcher.attempt_files import fetching
from dispatcher.errors import BackendError, PermanentBackendError
from dispatcher.platforms.files import Whereabouts
from dispatcher.platforms.ssh.files import FileServer, SshFiles
from dispatcher.platforms.ssh.machine import Machine
from dispatcher.ports import FileEntry
from dispatcher.ssh import HostUnreachable
from tests.support import sshd


def everything(entry: FileEntry) -> bool:
    return True


def attempt(folder: Path) -> Whereabouts:
    (folder / "work").mkdir(parents=True)
    (folder / "stdout").write_bytes(b"hello")
    return Whereabouts("e", 0, 1, str(folder), work=str(folder / "work"))


def machine(server: sshd.Sshd, **more: str) -> Machine:
    said = {"python": sys.executable, **more}
    return Machine(name="box", target=server.target, **said)  # type: ignore[arg-type]


def liar(folder: Path, answers: str) -> str:
    """A Python that answers what it likes."""
    path = folder / "liar"
    path.write_text(
        f"#!{sys.executable}\nimport sys\n"
        "sys.stdin.buffer.read(int(sys.argv[5]))  # the code\n"
        "for line in sys.stdin.buffer:\n"
        f"    sys.stdout.write({answers!r})\n    sys.stdout.flush()\n"
    )
    path.chmod(0o755)
    return str(path)


def test_a_prolog_that_talks_and_a_name_that_is_no_text(server: sshd.Sshd, tmp_path: Path) -> None:
    told = attempt(tmp_path / "there")
    (tmp_path / "there/work/way").symlink_to("/etc")
    (tmp_path / "there/work/odd\x1b[2J\udcff").write_bytes(b"x" * 9_000_000)
    files = SshFiles(FileServer(machine(server, prolog="echo hello; read x")), told)
    try:
        done = fetching.fetch(files, tmp_path / "here", "0.1", everything)
        assert (len(done.fetched), done.nbytes, done.left) == (2, 9_000_005, {})
        assert (tmp_path / "here/work/odd\x1b[2J\udcff").stat().st_size == 9_000_000
        with pytest.raises(PermanentBackendError, match="cannot be read"):
            files.read("work/way/passwd", 0, 10)
        assert files.read("stdout", 0, 10) is not None, "an error of one file harms no other"
        question = {"ask": "read", "folders": told.for_files(), "path": "stdout"}
        with pytest.raises(BackendError, match="more than was asked"):
            files._server.ask({**question, "offset": 0, "limit": 5}, most_bytes=3)
        piece = files.read("stdout", 1, 10)
        assert piece is not None
        assert piece.data == b"ello", "what was left of an answer is not the next one"
    finally:
        files.close()


@pytest.mark.parametrize(
    "answer",
    [
        "no json\n",
        "[]\n",
        '{"bytes": -1}\n',
        '{"bytes": 1e99}\n',
        '{"bytes": 99999999999}\n',
        '{"bytes": 2}\n{}',
        '{"bytes": 46}\n{"files": [["stdout", "five", 0, "", 0]], "c": 0}',
        "x" * 100_000,
    ],
    ids=range(8),
)
def test_a_machine_that_says_nonsense_is_not_believed(
    answer: str, server: sshd.Sshd, tmp_path: Path
) -> None:
    told = attempt(tmp_path / "there")
    python = liar(tmp_path, answer)
    files = SshFiles(FileServer(machine(server, python=python)), told)
    try:
        with pytest.raises(BackendError):
            files.list(most=10)
        assert not (tmp_path / "here").exists()
    finally:
        files.close()


def test_a_machine_that_is_gone_in_the_midst(own: sshd.Sshd, tmp_path: Path) -> None:
    told = attempt(tmp_path / "there")
    (tmp_path / "there/work/big").write_bytes(bytes(12 << 20))
    files = SshFiles(FileServer(machine(own)), told)

    def cut(path: str, have: int, size: int) -> None:
        if path == "work/big":
            own.kill()

    try:
        with pytest.raises(BackendError):
            fetching.fetch(files, tmp_path / "here", "0.1", everything, progress=cut)
        assert not (tmp_path / "here/work/big").exists()
        with pytest.raises(HostUnreachable):
            files.list(most=10)
        own.start()
        done = fetching.fetch(files, tmp_path / "here", "0.1", everything)
        assert (done.fetched, done.same) == (["work/big"], 1)
        assert done.nbytes <= 8 << 20, "the first piece was here"
        assert (tmp_path / "here/work/big").read_bytes() == bytes(12 << 20)
    finally:
        files.close()


def test_a_machine_without_such_a_python(server: sshd.Sshd, tmp_path: Path) -> None:
    files = SshFiles(FileServer(machine(server, python="no-such-python")), attempt(tmp_path / "t"))
    try:
        with pytest.raises(BackendError) as raised:
            files.list(most=10)
        assert "no-such-python" in str(raised.value)
    finally:
        files.close()
