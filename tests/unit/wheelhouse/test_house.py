"""Wheels on this machine's disk: fetched once, known by their digest, asked of pip in its words."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from dispatcher.wheelhouse import HostPython, Wheel, WheelCache, WheelsMissing, known_wheels
from dispatcher.wheelhouse import pip as pip_module
from dispatcher.wheelhouse.pip import PipFailed, fetch
from dispatcher.wheelhouse.wheels import choose

HOST = HostPython((3, 9), cpu="x86_64", libc="glibc", libc_version=(2, 31))
CONTENT = b"PK of a sort"
WHEEL = Wheel("zmq-1.0-py3-none-any.whl", hashlib.sha256(CONTENT).hexdigest())


class Index:
    """What pip would fetch."""

    def __init__(self) -> None:
        self.content: bytes | None = CONTENT
        self.asked: list[list[str]] = []

    def __call__(self, wheels: Sequence[Wheel], host: HostPython, folder: Path) -> None:
        assert host == HOST
        self.asked.append([wheel.file for wheel in wheels])
        if self.content is None:
            raise PipFailed("no way out")
        for wheel in wheels:
            (folder / wheel.file).write_bytes(self.content)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def index() -> Index:
    return Index()


def house(tmp_path: Path, index: Index, clock: Clock | None = None) -> WheelCache:
    return WheelCache(tmp_path / "deep" / "wheels", fetch=index, clock=clock or Clock())


def test_it_is_fetched_once(tmp_path: Path, index: Index) -> None:
    (path,) = house(tmp_path, index).get([WHEEL], HOST)
    assert path.read_bytes() == CONTENT
    assert house(tmp_path, index).get([WHEEL], HOST) == [path]
    assert index.asked == [[WHEEL.file]]
    assert [x.name for x in path.parent.iterdir() if x.suffix == ".whl"] == [WHEEL.file]


def test_what_has_changed_on_the_disk_is_fetched_again(tmp_path: Path, index: Index) -> None:
    """Mutation: a file that is there is believed."""
    (path,) = house(tmp_path, index).get([WHEEL], HOST)
    path.write_bytes(b"something else")
    assert house(tmp_path, index).get([WHEEL], HOST)[0].read_bytes() == CONTENT
    assert len(index.asked) == 2


def test_what_comes_with_another_digest_is_not_used(tmp_path: Path, index: Index) -> None:
    """Mutation: what pip has fetched is believed."""
    index.content = b"somebody else's"
    one = house(tmp_path, index)
    with pytest.raises(WheelsMissing, match="cannot be fetched"):
        one.get([WHEEL], HOST)
    assert not list(one.folder.glob("*.whl"))


def test_without_an_index_it_says_which_file_to_put_where(tmp_path: Path, index: Index) -> None:
    index.content, clock = None, Clock()
    one = house(tmp_path, index, clock)
    with pytest.raises(WheelsMissing, match="no way out") as caught:
        one.get([WHEEL], HOST)
    assert str(one.folder) in caught.value.hint
    assert f"{WHEEL.file} (sha256 {WHEEL.digest})" in caught.value.hint
    with pytest.raises(WheelsMissing, match="no way out"):
        one.get([WHEEL], HOST)
    assert len(index.asked) == 1, "not each visit waits for pip"
    (one.folder / WHEEL.file).write_bytes(CONTENT)
    assert one.get([WHEEL], HOST) == [one.folder / WHEEL.file]


def test_it_is_asked_for_again_later(tmp_path: Path, index: Index) -> None:
    index.content, clock = None, Clock()
    one = house(tmp_path, index, clock)
    with pytest.raises(WheelsMissing):
        one.get([WHEEL], HOST)
    index.content, clock.now = CONTENT, 301.0
    assert one.get([WHEEL], HOST)


def test_what_one_can_do_without_keeps_nobody_from_what_is_needed(
    tmp_path: Path, index: Index
) -> None:
    """pip gets all or nothing. Mutation: all that was asked for with it is held for missing."""
    other = Wheel("far-1.0-py3-none-any.whl", "0" * 64)

    def fetch(wheels: Sequence[Wheel], host: HostPython, folder: Path) -> None:
        if other in wheels:
            raise PipFailed("no such wheel")
        index(wheels, host, folder)

    clock = Clock()
    one = WheelCache(tmp_path, fetch=fetch, clock=clock)
    with pytest.raises(WheelsMissing):
        one.get([WHEEL, other], HOST)
    assert one.get([WHEEL], HOST)


def test_a_machine_that_asks_often_does_not_put_the_next_try_off(
    tmp_path: Path, index: Index
) -> None:
    """Mutation: a refusal without a try counts as one."""
    index.content, clock = None, Clock()
    one = house(tmp_path, index, clock)
    for clock.now in (0.0, 200.0):
        with pytest.raises(WheelsMissing, match="no way out"):
            one.get([WHEEL], HOST)
    assert len(index.asked) == 1
    index.content, clock.now = CONTENT, 301.0
    assert one.get([WHEEL], HOST)


def test_a_folder_that_cannot_be_used_is_said(tmp_path: Path, index: Index) -> None:
    (tmp_path / "deep").write_text("a file")
    with pytest.raises(WheelsMissing, match="cannot be used") as caught:
        house(tmp_path, index).get([WHEEL], HOST)
    assert "BEQUEATH_WHEELS" in caught.value.hint


def test_pip_is_asked_for_these_very_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutation: without ``--require-hashes``, or for our own Python."""
    ran: list[list[str]] = []

    def run(words: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        ran.append(words)
        return subprocess.CompletedProcess(words, 1, "", "WARNING: x\nERROR: no such thing\n")

    monkeypatch.setattr(pip_module.subprocess, "run", run)
    wheels = list(choose(HOST, ["msgspec", "filelock"]).values())
    with pytest.raises(PipFailed, match=r"^no such thing$"):
        fetch(wheels, HOST, tmp_path)
    (words,) = ran
    assert words[:4] == [sys.executable, "-m", "pip", "download"]
    assert {"--require-hashes", "--only-binary=:all:", "--no-deps"} <= set(words)
    assert words[words.index("--python-version") + 1] == "3.9"
    asked = (tmp_path / "requirements.txt").read_text().splitlines()
    assert asked == [f"{w.project}=={w.version} --hash=sha256:{w.digest}" for w in wheels]
    assert all(wheel in known_wheels() for wheel in wheels)


@pytest.mark.parametrize(
    "broken, said",
    [
        (
            "'NewConnectionError(\"HTTPConnection(host='pypi.org', port=80): Failed to establish a "
            "new connection: [Errno 111] Connection refused\")': /simple/numpy/",
            "pip cannot reach the package index at pypi.org: Connection refused",
        ),
        (
            "'NameResolutionError(\"HTTPSConnection(host='pypi.org', port=443): Failed to resolve "
            "'pypi.org' ([Errno -2] Name or service not known)\")': /simple/numpy/",
            "pip cannot reach the package index at pypi.org: Name or service not known",
        ),
        (
            "'ProxyError('Cannot connect to proxy.', OSError('Tunnel failed: 403'))': /simple/",
            "pip cannot reach the package index: ProxyError",
        ),
    ],
)
def test_an_index_that_does_not_answer_is_no_missing_distribution(broken: str, said: str) -> None:
    """pip says both; its last words would send one looking for a wheel that is there."""
    none = "ERROR: No matching distribution found for numpy==2.4.6\n"
    warned = f"WARNING: Retrying (Retry(total=0)) after connection broken by {broken}\n"
    assert pip_module.cause_of(warned + "ERROR: Could not find a version\n" + none, 1) == said
    assert pip_module.cause_of(none, 1) == "No matching distribution found for numpy==2.4.6"
    assert pip_module.cause_of(warned + "ERROR: hashes differ\n", 1) == "hashes differ"
