"""Files from elsewhere: whole, in their folder, within bounds, whatever the other side says."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from dispatcher.attempt_files import fetching
from dispatcher.attempt_files.fetched import Fetched
from dispatcher.attempt_files.fetching import FetchResult
from dispatcher.errors import PassingBackendError
from dispatcher.ports import FileEntry, FileList, FilePiece

#: Nobody else's, were it ever made.
ESCAPED = f"/tmp/{os.getpid()}-escaped"


class Elsewhere:
    """A place that says of its files what a test wants."""

    place = "far"

    def __init__(self, **files: bytes) -> None:
        self.files = {name.replace("__", "/"): data for name, data in files.items()}
        self.versions: dict[str, int] = {}
        self.asked: list[tuple[str, int]] = []
        self.before_read: Callable[[str, int], None] = lambda path, offset: None

    def put(self, path: str, data: bytes) -> None:
        self.files[path] = data
        self.versions[path] = self.versions.get(path, 0) + 1

    def _version(self, path: str) -> str:
        return f"{self.versions.get(path, 0)}-{len(self.files[path])}"

    def list(self, below: str = "", *, most: int) -> FileList:
        found = [
            FileEntry(path, len(data), 0.0, self._version(path))
            for path, data in self.files.items()
        ]
        return FileList(found[:most], len(found) > most)

    def read(self, path: str, offset: int, limit: int) -> FilePiece | None:
        self.before_read(path, offset)
        self.asked.append((path, offset))
        data = self.files.get(path)
        if data is None:
            return None
        return FilePiece(data[offset : offset + limit], len(data), self._version(path), "1")

    def shell(self, command: Sequence[str], *, terminal: bool) -> int:
        raise AssertionError

    def close(self) -> None:
        pass


def bring(there: Elsewhere, into: Path, **settings: object) -> FetchResult:
    return fetching.fetch(there, into, "0.1", lambda entry: True, **settings)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "CHUNK_BYTES", 4)


@pytest.fixture
def into(tmp_path: Path) -> Path:
    return tmp_path / "trials/0/1"


def test_all_arrives_and_comes_once(into: Path) -> None:
    there = Elsewhere(stdout=b"hello there", artefacts__a__b=b"", work__c=b"c" * 9)
    done = bring(there, into)
    assert (done.fetched, done.nbytes, done.left) == (list(there.files), 20, {})
    assert (into / "stdout").read_bytes() == b"hello there"
    assert (into / "artefacts/a/b").read_bytes() == b""
    there.asked.clear()
    assert bring(there, into).same == 3
    assert there.asked == []
    there.put("work/c", b"new")
    assert bring(there, into).fetched == ["work/c"]
    (into / "stdout").unlink()
    assert bring(there, into).fetched == ["stdout"]
    assert sorted(path.name for path in into.iterdir()) == [
        ".fetched.json",
        "artefacts",
        "stdout",
        "work",
    ]


@pytest.mark.parametrize(
    "name",
    [
        "../escaped",
        "artefacts/../../escaped",
        ESCAPED,
        "artefacts//escaped",
        "artefacts/./escaped",
        "artefacts/\0escaped",
        "",
        "artefacts/",
        ".fetched.json",
        ".bashrc",
        "stdout.1.escaped",
        "elsewhere/escaped",
        "work/" + "n" * 300,
        "work/" + "n/" * 3000 + "n",
        "work/\ud800",  # which no disk can hold
    ],
)
def test_no_name_leads_out(name: str, into: Path) -> None:
    there = Elsewhere(stdout=b"well")
    there.files[name] = b"bad"
    done = bring(there, into)
    assert done.fetched == ["stdout"]
    assert list(done.left) == [name]
    assert [p.name for p in into.parents[2].rglob("*escaped*")] == []
    assert not Path(ESCAPED).exists()
    assert Fetched.read(into, "0.1").files.keys() == {"stdout"}


def test_no_link_here_leads_out_either(into: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (into / "artefacts").mkdir(parents=True)
    (into / "artefacts/way").symlink_to(outside)
    (into / "stdout").symlink_to(outside / "made")
    done = bring(Elsewhere(stdout=b"log", artefacts__way__a=b"a"), into)
    assert done.fetched == ["stdout"]
    assert "link" in done.left["artefacts/way/a"]
    assert list(outside.iterdir()) == []
    assert not (into / "stdout").is_symlink(), "the name was taken over, not followed"


def test_what_was_cut_short_goes_on_where_it_ended(into: Path) -> None:
    there = Elsewhere(artefacts__big=bytes(range(20)))

    def cut(path: str, offset: int) -> None:
        if offset == 12:
            raise PassingBackendError("cut off")

    there.before_read = cut
    with pytest.raises(PassingBackendError):
        bring(there, into)
    assert not (into / "artefacts/big").exists(), "whole, or not there"
    there.before_read = lambda path, offset: None
    there.asked.clear()
    done = bring(there, into)
    assert (done.nbytes, there.asked[0]) == (8, ("artefacts/big", 12))
    assert (into / "artefacts/big").read_bytes() == bytes(range(20))


def test_a_file_that_changes_meanwhile_is_begun_anew(into: Path) -> None:
    there = Elsewhere(artefacts__a=b"old old old")

    def change(path: str, offset: int) -> None:
        if offset == 8 and there.versions.get(path, 0) == 0:
            there.put(path, b"new new new new")

    there.before_read = change
    assert bring(there, into).fetched == ["artefacts/a"]
    assert (into / "artefacts/a").read_bytes() == b"new new new new"


def test_one_that_never_rests_is_left(into: Path) -> None:
    there = Elsewhere(work__a=b"0123456789", work__b=b"quiet")
    there.before_read = lambda path, offset: there.put("work/a", b"0123456789")
    done = bring(there, into)
    assert done.fetched == ["work/b"]
    assert done.left == {"work/a": "changes while it is fetched"}
    assert not (into / ".fetching").exists(), "nothing is left of it"


def test_of_a_log_that_grows_what_there_was_is_taken(into: Path) -> None:
    there = Elsewhere(stdout=b"0123456789")

    def grow(path: str, offset: int) -> None:
        if offset:
            there.put(path, there.files[path] + b"more")

    there.before_read = grow
    assert bring(there, into).left == {}
    assert (into / "stdout").read_bytes() == b"0123456789"


def test_what_is_gone_meanwhile_is_said(into: Path) -> None:
    there = Elsewhere(work__a=b"a", work__b=b"b")
    there.before_read = lambda path, offset: there.files.pop("work/a", None) and None
    done = bring(there, into)
    assert (done.fetched, done.left) == (["work/b"], {"work/a": "is gone meanwhile"})


def test_one_that_ends_before_its_end_is_left(into: Path) -> None:
    there = Elsewhere(work__a=b"short")

    def read(path: str, offset: int, limit: int) -> FilePiece:
        return FilePiece(b"short"[offset : offset + limit], 1 << 40, there._version(path), "1")

    there.read = read  # type: ignore[method-assign]
    assert bring(there, into).left == {"work/a": "ends before its end"}


def test_what_does_not_fit_stays_there(into: Path) -> None:
    there = Elsewhere(stdout=b"12345", artefacts__big=b"b" * 100, work__small=b"12345")
    done = bring(there, into, most_bytes=10)
    assert done.fetched == ["stdout", "work/small"]
    assert "more than may be fetched" in done.left["artefacts/big"]
    assert Fetched.read(into, "0.1").left == done.left


def test_a_list_is_bounded(into: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "MOST_FILES", 3)
    there = Elsewhere(**{f"work__{n}": b"x" for n in range(5)})
    done = bring(there, into)
    assert (len(done.fetched), done.cut) == (3, True)


def test_two_that_fetch_the_same_do_not_mix(into: Path) -> None:
    there = Elsewhere(work__a=b"0123456789")
    inner: list[FetchResult] = []

    def meanwhile(path: str, offset: int) -> None:
        if offset == 4 and not inner:
            there.before_read = lambda path, offset: None
            inner.append(bring(there, into))

    there.before_read = meanwhile
    assert bring(there, into).fetched == ["work/a"]
    assert "somebody else" in inner[0].left["work/a"]
    assert (into / "work/a").read_bytes() == b"0123456789"


def test_the_record_of_another_attempt_says_nothing(into: Path) -> None:
    bring(Elsewhere(stdout=b"one"), into, over=("logs",))
    assert Fetched.read(into, "0.1").kinds == ["logs"]
    assert Fetched.read(into, "0.2").kinds == []
    (into / ".fetched.json").write_text("[]")
    assert Fetched.read(into, "0.1").kinds == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 256 KiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    if os.geteuid() != 0 or not shutil.which("mount"):
        pytest.skip("needs root to make a small disk")
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("may make no small disk here")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_disk_that_is_full_is_said_and_gets_its_room_back(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "CHUNK_BYTES", 64 << 10)
    there = Elsewhere(stdout=b"log", artefacts__big=b"b" * (1 << 20), work__after=b"x")
    into = small_disk / "to"
    with pytest.raises(PassingBackendError, match="no space left here") as raised:
        bring(there, into)
    assert str(into) in raised.value.where
    assert (into / "stdout").read_bytes() == b"log"
    assert not (into / "artefacts/big").exists()
    free = os.statvfs(small_disk)
    assert free.f_bavail * free.f_frsize > 128 << 10, "what had come is gone again"
    assert Fetched.read(into, "0.1").files.keys() == {"stdout"}


def test_which_files_are_meant() -> None:
    assert fetching.kind_of("stdout.3") == "logs"
    assert fetching.kind_of("artefacts/plots/a.png") == "artefacts"
    assert fetching.matches("artefacts/plots/a.png", ["*.png"])
    assert fetching.matches("work/deep/a", ["work"])
    assert fetching.matches("work/deep/a", ["work/"])
    assert not fetching.matches("works/a", ["work"])
