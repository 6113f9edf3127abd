"""A file that grows, is begun anew, cut off or replaced, at any moment."""

from __future__ import annotations

import json
import os
from collections import deque
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from trial_runtime.agent.programs.lines import LineSplitter
from trial_runtime.agent.programs.metrics_file import FilePart, MetricsFile, RewrittenLines


class Reader:
    """Lines of a file as they are found, by looks that a test decides on."""

    def __init__(self, path: Path, *, rewritten: bool, most: int = 1 << 20) -> None:
        self.file = MetricsFile(str(path))
        self.splitter = LineSplitter()
        self.rewritten = RewrittenLines() if rewritten else None
        self.most = most
        self.lines: list[bytes] = []

    def look(self) -> None:
        part = self.file.read(self.most)
        if part.anew:
            self.splitter.begin_anew()
            if self.rewritten is not None:
                self.rewritten.begin_anew()
        lines = self.splitter.feed(part.content)
        self.lines += lines if self.rewritten is None else self.rewritten.new_of(lines)


def test_it_grows(tmp_path: Path) -> None:
    path = tmp_path / "m"
    file = MetricsFile(str(path))
    assert file.read(100) == FilePart(b"")
    path.write_bytes(b"one\n")
    assert file.read(3) == FilePart(b"one")
    assert file.read(100) == FilePart(b"\n")
    with path.open("ab") as stream:
        stream.write(b"two\n")
    assert file.read(100) == FilePart(b"two\n")
    assert file.read(100) == FilePart(b"")
    file.close()
    file.close()


def test_it_is_begun_anew_shorter_or_longer(tmp_path: Path) -> None:
    """Mutation: a longer one is taken for one that has grown."""
    path = tmp_path / "m"
    file = MetricsFile(str(path))
    path.write_bytes(b"one\ntwo\n")
    file.read(100)
    path.write_bytes(b"three\n")
    assert file.read(100) == FilePart(b"three\n", anew=True)
    path.write_bytes(b"four\nfive\nsix\n")
    assert file.read(100) == FilePart(b"four\nfive\nsix\n", anew=True)
    path.write_bytes(b"")
    assert file.read(100) == FilePart(b"")
    path.write_bytes(b"four\n")
    assert file.read(100) == FilePart(b"four\n", anew=True), "it was empty in between"
    file.close()


def test_one_that_takes_its_place_is_read_after_the_rest_of_it(tmp_path: Path) -> None:
    """As logs are rotated. Mutation: what came between the last look and the rename is lost."""
    path = tmp_path / "m"
    file = MetricsFile(str(path))
    path.write_bytes(b"one\n")
    file.read(100)
    with path.open("ab") as stream:
        stream.write(b"two\n")
    os.rename(path, tmp_path / "m.1")
    assert file.read(100) == FilePart(b"two\n")
    assert file.read(100) == FilePart(b"")
    path.write_bytes(b"three\n")
    assert file.read(100) == FilePart(b"three\n", anew=True)
    file.close()


def test_only_a_regular_file_is_read(tmp_path: Path) -> None:
    """A pipe would be waited for, a link leads to another's. Mutation: a plain ``open``."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    (tmp_path / "target").write_text("secret\n")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "link", "folder", "no/such"):
        assert MetricsFile(str(tmp_path / name)).read(100) == FilePart(b"")


def test_most_of_it_may_be_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "m"
    path.write_bytes(b"x" * 90 + b"one\ntwo\n")
    file = MetricsFile(str(path))
    assert file.skip(8) == 0, "it is not open yet"
    file.read(10)
    assert file.skip(8) == 80
    assert file.read(100) == FilePart(b"one\ntwo\n")
    assert file.skip(8) == 0
    file.close()


#: What a program does between two looks: reports, or looks that come while it writes.
ACTS = st.lists(
    st.one_of(
        st.just("report"),
        st.just("look"),
        st.integers(0, 2000),  # a report that is looked at when so many bytes are written
    ),
    max_size=40,
)


@given(ACTS, st.integers(1, 6))
@settings(max_examples=150, deadline=None)
def test_each_report_of_hypertune_counts_once(
    tmp_path_factory, acts: list[str | int], kept: int
) -> None:
    """It writes its last reports anew each time, and is looked at while it does. Mutations: the
    file is read as one that grows; known lines that are half written are new ones."""
    path = tmp_path_factory.mktemp("m") / "output.metrics"
    reader = Reader(path, rewritten=True)
    # As in the library, which keeps a hundred. More than it keeps may not come between two looks.
    queue: deque[str] = deque(maxlen=kept)
    reported: list[bytes] = []
    unseen = 0
    for act in acts:
        if act == "look" or unseen == kept:
            reader.look()
            unseen = 0
        if act == "look":
            continue
        line = json.dumps({"timestamp": 1525851440.5 + len(reported), "acc": "0.5"})
        queue.append(line)
        reported.append(line.encode())
        unseen += 1
        content = "".join(f"{each}\n" for each in queue).encode()
        if isinstance(act, int):
            path.write_bytes(content[:act])
            reader.look()
        path.write_bytes(content)
    reader.look()
    reader.file.close()
    assert reader.lines == reported


@given(st.lists(st.sampled_from([b"a\n", b"b\n", b"c"]), max_size=30), st.integers(1, 7))
@settings(max_examples=100, deadline=None)
def test_a_file_that_grows_is_read_in_any_parts(
    tmp_path_factory, pieces: list[bytes], most: int
) -> None:
    """Lines that are alike count each, also where lines are known by what they hold."""
    path = tmp_path_factory.mktemp("m") / "m"
    readers = [Reader(path, rewritten=each, most=most) for each in (True, False)]
    with path.open("ab", buffering=0) as stream:
        for piece in pieces:
            stream.write(piece)
            for reader in readers:
                reader.look()
        for reader in readers:
            for _ in range(sum(map(len, pieces)) // most + 1):
                reader.look()
            reader.file.close()
            assert reader.lines == [x for x in b"".join(pieces).split(b"\n")[:-1] if x]
