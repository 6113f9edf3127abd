"""One end of a line through a folder, and what a folder can do to it."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trial_runtime.folder_line import line
from trial_runtime.folder_line.line import GAP_S, MOST_FILES, RING_AGAIN_S, FolderLine, lay_out
from trial_runtime.folder_line.sealed import (
    BELL_BYTES,
    MOST_BYTES,
    NOBODY,
    Bell,
    key_of,
    pack_batch,
    pack_bell,
    unpack_batch,
    unpack_bell,
)

SECRET = "agent:w:0123456789abcdef"


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class Ends:
    """A folder, and ends of a line in it; the clocks of the two machines differ by hours."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock, self.far_clock = Clock(), Clock(90_000.0)
        self.head = self.new_head()
        self.head.look()
        self.agent = self.new_agent()

    def new_head(self) -> FolderLine:
        return FolderLine(self.folder, "down", SECRET, makes=True, clock=self.clock)

    def new_agent(self, secret: str = SECRET) -> FolderLine:
        return FolderLine(self.folder, "up", secret, clock=self.far_clock)

    def passes(self, seconds: float) -> None:
        self.clock.now += seconds
        self.far_clock.now += seconds

    def meet(self) -> None:
        for _ in range(3):
            assert self.agent.look() == []
            assert self.head.look() == []

    def exchange(self, seconds: float = 0.0, rounds: int = 8) -> tuple[list[bytes], list[bytes]]:
        """What the head and the agent get while they look in turns."""
        up: list[bytes] = []
        down: list[bytes] = []
        for _ in range(rounds):
            self.passes(seconds / rounds)
            down += self.agent.look()
            up += self.head.look()
        return up, down

    def files(self, direction: str) -> list[Path]:
        return sorted(self.folder.glob(f"{direction}-*"))


@pytest.fixture
def ends(tmp_path: Path) -> Ends:
    made = Ends(tmp_path / "home" / "line")
    made.meet()
    return made


def works(ends: Ends) -> None:
    """Frames go both ways, and leave nothing behind."""
    assert ends.agent.send([b"up"])
    assert ends.head.send([b"down"])
    assert ends.exchange() == ([b"up"], [b"down"])
    assert ends.files("up") == ends.files("down") == []


def test_frames_come_in_order_and_their_files_go_when_they_were_read(ends: Ends) -> None:
    """Mutations: a file stays that was read; a number is read twice."""
    for number in range(5):
        assert ends.agent.send([b"%d" % number, b""])
    assert len(ends.files("up")) == 5
    up, _ = ends.exchange()
    assert up == [each for number in range(5) for each in (b"%d" % number, b"")]
    works(ends)
    assert {path.name for path in ends.folder.iterdir()} == {"up.bell", "down.bell"}


def test_nobody_else_may_look_into_the_folder(ends: Ends) -> None:
    """Mutation: modes as the umask leaves them."""
    ends.agent.send([b"x"])
    assert ends.folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in ends.folder.iterdir()} == {0o600}


def test_nothing_is_written_for_an_end_that_was_never_seen(tmp_path: Path) -> None:
    """Mutation: files are written for whoever comes."""
    lay_out(tmp_path / "line")
    agent = FolderLine(tmp_path / "line", "up", SECRET)
    agent.look()
    assert not agent.takes
    assert not agent.send([b"x"])


def test_a_reader_that_is_behind_makes_the_writer_wait(ends: Ends) -> None:
    """Mutation: no bound."""
    sent = 0
    while ends.agent.send([b"%d" % sent]):
        sent += 1
    assert sent == MOST_FILES == len(ends.files("up"))
    assert ends.head.look() == [b"%d" % number for number in range(sent)]
    ends.agent.look()
    works(ends)


def test_large_frames_fill_the_line_by_their_bytes(ends: Ends) -> None:
    """Mutation: only files are counted."""
    sent = 0
    while ends.agent.send([bytes(MOST_BYTES)]):
        sent += 1
    assert 3 <= sent <= 5
    up, _ = ends.exchange()
    assert [len(each) for each in up] == [MOST_BYTES] * sent


@pytest.mark.parametrize("content", [b"", b"torn", b"\xff" * BELL_BYTES, b"\0" * 10_000])
def test_a_torn_bell_is_passed_over_until_the_next_look(ends: Ends, content: bytes) -> None:
    """Mutations: it raises; it stays as it is for ever."""
    ends.agent.send([b"x"])
    good = (ends.folder / "up.bell").read_bytes()
    (ends.folder / "up.bell").write_bytes(content)
    assert ends.head.look() == []
    (ends.folder / "up.bell").write_bytes(good)
    assert ends.head.look() == [b"x"]
    (ends.folder / "up.bell").write_bytes(content)
    ends.passes(RING_AGAIN_S)
    ends.exchange()
    works(ends)


def test_bells_and_files_of_somebody_without_the_secret_are_refused(ends: Ends) -> None:
    """Mutations: the seal is not looked at; one key for both directions."""
    stranger = ends.new_agent("agent:w:another")
    (ends.folder / "up.bell").unlink()
    stranger.look()
    assert not stranger.takes, "nor does it believe the head"
    peer = ends.head.peer
    ends.head.look()
    assert ends.head.peer == peer
    assert ends.head.refused.counts["bells"] == 1
    shutil.copy(ends.folder / "down.bell", ends.folder / "up.bell")  # our own, sent back
    ends.head.look()
    assert ends.head.peer == peer
    assert ends.head.refused.counts["bells"] == 2


def _torn(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def _forged(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def _link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _too_large(path: Path) -> None:
    with path.open("ab") as file:
        file.truncate(1 << 30)


@pytest.mark.parametrize("harm", [Path.unlink, _torn, _forged, _link, _pipe, _too_large])
def test_an_announced_file_that_cannot_be_had_breaks_the_connection(
    ends: Ends, harm: Callable[[Path], None]
) -> None:
    """It is waited for a while: the file server may be late. Then both ends begin anew.

    Mutations: it is passed over at once; it is waited for without end; a link is followed."""
    ends.agent.send([b"one"])
    harm(ends.files("up")[0])
    ends.agent.send([b"two"])
    assert ends.exchange(GAP_S * 0.9)[0] == []
    assert ends.head.refused.counts.get("files") is None
    assert ends.exchange(GAP_S * 0.3) == ([], [])
    assert ends.head.refused.counts["files"] == 1
    works(ends)


def test_a_file_that_is_late_is_waited_for(ends: Ends) -> None:
    """Mutation: a gap begins the connection anew at once."""
    ends.agent.send([b"late"])
    (path,) = ends.files("up")
    hidden = path.rename(ends.folder / "hidden")
    assert ends.exchange(GAP_S * 0.5)[0] == []
    hidden.rename(path)
    assert ends.exchange()[0] == [b"late"]


def test_a_file_that_was_read_comes_never_again(ends: Ends) -> None:
    """Mutations: the number is not sealed; the lives are not."""
    ends.agent.send([b"one"])
    (path,) = ends.files("up")
    old, bell = path.read_bytes(), (ends.folder / "up.bell").read_bytes()
    assert ends.exchange()[0] == [b"one"]
    path.write_bytes(old)
    (ends.folder / "up.bell").write_bytes(bell)
    assert ends.head.look() == []
    ends.agent.send([b"two"])
    newest = next(each for each in ends.files("up") if each.name.endswith("-2"))
    good = newest.read_bytes()
    newest.write_bytes(old)
    assert ends.head.look() == []
    newest.write_bytes(good)
    assert ends.exchange()[0] == [b"two"]


def test_the_bell_of_an_end_that_is_gone_does_not_bring_it_back(ends: Ends) -> None:
    """Mutation: any life that differs is a new one."""
    bell = (ends.folder / "up.bell").read_bytes()
    ends.agent = ends.new_agent()
    ends.meet()
    peer = ends.head.peer
    (ends.folder / "up.bell").write_bytes(bell)
    ends.head.look()
    assert ends.head.peer == peer


def test_a_head_that_begins_anew_is_met_and_gets_nothing_of_the_one_before(ends: Ends) -> None:
    """Mutations: what was under way comes to the next head; its files stay for ever."""
    ends.agent.send([b"for the one before"])
    ends.head.send([b"of the one before"])
    ends.head = ends.new_head()
    ends.head.look()
    ends.meet()
    works(ends)


def test_an_agent_that_begins_anew_is_met(ends: Ends) -> None:
    """Mutation: numbers of the agent before are waited for."""
    ends.agent.send([b"of the one before"])
    ends.head.send([b"for the one before"])
    ends.agent = ends.new_agent()
    ends.meet()
    works(ends)


@pytest.mark.parametrize("kind", ["agent", "head"])
def test_of_two_ends_of_a_kind_the_newer_one_is_heard(ends: Ends, kind: str) -> None:
    """The older one gives way for a while, and tries again; while it is there the connection may
    change, and nothing of one ever comes as the other's.

    Mutations: both ring without a pause; the older one is silent for ever."""
    old = getattr(ends, kind)
    new = ends.new_agent() if kind == "agent" else ends.new_head()
    setattr(ends, kind, new)
    for _ in range(3):
        new.look()
        ends.agent.look()
        ends.head.look()
    old.look()
    assert old.refused.counts["taken over"] == 1
    bell = (ends.folder / ("up.bell" if kind == "agent" else "down.bell")).read_bytes()
    assert old.look() == []
    assert not old.send([b"of the older one"])
    assert (ends.folder / ("up.bell" if kind == "agent" else "down.bell")).read_bytes() == bell
    works(ends)
    ends.passes(3.0)
    for _ in range(3):  # the newer one is gone: the older one is heard again
        old.look()
        (ends.head if kind == "agent" else ends.agent).look()
    setattr(ends, kind, old)
    works(ends)


def test_a_folder_that_is_removed_is_made_anew(ends: Ends) -> None:
    """Mutations: the head does not make it; a bell that is gone is not rung again."""
    ends.agent.send([b"lost"])
    shutil.rmtree(ends.folder)
    assert not ends.agent.send([b"not now"])
    ends.exchange(RING_AGAIN_S * 2)
    ends.exchange(GAP_S * 2)
    works(ends)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.ESTALE, errno.EIO])
def test_a_disk_that_takes_nothing_makes_the_writer_wait(
    ends: Ends, number: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Mutations: it raises; a file is announced that was not written; each try is logged."""

    def half(descriptor: int, content: bytes) -> None:
        os.write(descriptor, content[: len(content) // 2])
        os.close(descriptor)
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("trial_runtime.folder_line.line.write_whole", half)
    for _ in range(5):
        assert not ends.agent.send([b"x" * 5000])
        ends.agent.look()
    assert ends.files("up") == []
    assert len(caplog.records) == 1
    monkeypatch.undo()
    ends.agent.look()
    works(ends)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written_is_no_error(ends: Ends) -> None:
    """Mutation: it raises."""
    ends.folder.chmod(0o500)
    try:
        assert not ends.agent.send([b"x"])
        assert not ends.agent.send([b"x"])
    finally:
        ends.folder.chmod(0o700)
    works(ends)


lives = st.binary(min_size=8, max_size=8)
numbers = st.integers(0, 2**64 - 1)
bells = st.builds(Bell, lives, lives, numbers, numbers)


@given(bells, st.integers(0, BELL_BYTES * 8 - 1))
def test_a_bell_is_read_as_it_was_written_or_not_at_all(bell: Bell, bit: int) -> None:
    """Mutation: a part of it is not sealed."""
    key = key_of(SECRET, "up")
    content = bytearray(pack_bell(bell, key))
    assert len(content) == BELL_BYTES
    assert unpack_bell(bytes(content), key) == bell
    assert unpack_bell(bytes(content), key_of(SECRET, "down")) is None
    content[bit // 8] ^= 1 << bit % 8
    assert unpack_bell(bytes(content), key) in (None, bell)  # the padding says nothing


@given(bells, st.lists(st.binary(max_size=40), max_size=20), st.data())
def test_a_batch_is_read_as_it_was_written_or_not_at_all(
    bell: Bell, frames: list[bytes], data: st.DataObject
) -> None:
    """Mutation: a part of it is not sealed."""
    key = key_of(SECRET, "up")
    content = bytearray(pack_batch(bell, frames, key))
    assert unpack_batch(bytes(content), bell, key) == frames
    other = bell._replace(newest=(bell.newest + 1) % 2**64)
    assert unpack_batch(bytes(content), other, key) is None
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    assert unpack_batch(bytes(content), bell, key) is None
    assert unpack_batch(bytes(content[:at]), bell, key) is None


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from("udUDahAHtg"), max_size=60))
def test_whatever_happens_frames_come_in_order_once_and_the_line_recovers(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str]
) -> None:
    """Looks and sends of both ends, ends that begin anew, a bell that is torn, a file that goes,
    in any order: within a connection frames come in order and at most once; afterwards the line
    works. Mutations: a number is skipped; a new life keeps numbers of the old one."""
    ends = Ends(tmp_path_factory.mktemp("any") / "line")
    sent = 0
    got: dict[str, list[int]] = {"up": [], "down": []}

    def take(direction: str, frames: list[bytes]) -> None:
        got[direction] += [int(each) for each in frames]

    for step in steps:
        ends.passes(0.2)
        if step == "u":
            take("down", ends.agent.look())
        elif step == "d":
            take("up", ends.head.look())
        elif step in "UD":
            sent += 1
            end: Any = ends.agent if step == "U" else ends.head
            end.send([b"%d" % sent])
        elif step == "A":
            ends.agent = ends.new_agent()
        elif step == "H":
            ends.head = ends.new_head()
        elif step == "t":
            (ends.folder / "up.bell").write_bytes(b"torn")
        elif step == "g":
            for path in ends.files("up")[:1]:
                path.unlink()
    for direction, numbers in got.items():
        assert numbers == sorted(set(numbers)), direction
    ends.exchange(RING_AGAIN_S * 2)
    ends.exchange(GAP_S * 2, rounds=20)
    ends.exchange()
    assert ends.head.peer != NOBODY
    works(ends)


def test_a_file_that_grows_while_it_is_read_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: what was small at its look is read to its end, wherever that is."""
    file = tmp_path / "down-1-1"
    file.write_bytes(b"x" * 64)
    sizes = os.stat("/dev/null")
    assert line.contents_of(str(file), 64) == b"x" * 64
    assert line.contents_of(str(file), 63) == b""
    monkeypatch.setattr(os, "fstat", lambda descriptor: sizes)
    monkeypatch.setattr(line, "open_regular", os.open)
    assert line.contents_of(str(file), 63) == b""
