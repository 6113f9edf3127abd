"""The shipped suite over a sink of another package and over ours; and it finds what it is for."""

from __future__ import annotations

import json
import os
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dispatcher.errors import PermanentBackendError
from dispatcher.experiment import parse_experiment
from dispatcher.experiment.sink_kinds import NoSuchSink, sink_kind
from dispatcher.sinks.conformance import HeldRun, NotConforming, try_sink
from dispatcher.sinks.feeding import Feeding
from dispatcher.sinks.protocol import SinkKind
from dispatcher.sinks.tensorboard import sink as tensorboard
from dispatcher.sinks.tensorboard.kind import TensorBoardConfig, TensorBoardKind
from tests.support.fed import fill, new_folder

FOREIGN = Path(__file__).parent / "foreign"


@pytest.fixture
def lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The other package, installed as ``pip`` does it; the folder of its metadata."""
    site = tmp_path / "site"
    info = site / "lines_sink-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "lines_sink.py").write_text((FOREIGN / "lines_sink.py").read_text())
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lines-sink\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[bequeath.sinks]\nlines = lines_sink:LINES\n")
    monkeypatch.syspath_prepend(str(site))
    yield info
    sys.modules.pop("lines_sink", None)


def read_lines(folder: Path) -> dict[int, HeldRun]:
    found = {}
    for path in folder.glob("*.jsonl"):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        steps = [row["step"] for row in rows if "step" in row]
        found[int(path.stem)] = HeldRun(steps, "outcome" in rows[-1], rows[0]["parent"])
    return found


def test_a_sink_of_another_package_conforms(lines: Path, tmp_path: Path) -> None:
    kind: Any = sink_kind("lines")
    assert not isinstance(kind, NoSuchSink), kind
    section = kind.section(kind="lines", folder=str(tmp_path / "there"))
    try_sink(kind, section, tmp_path, lambda: read_lines(tmp_path / "there"))


def test_it_is_named_in_a_file_and_fed(lines: Path, tmp_path: Path) -> None:
    config = parse_experiment(
        "tuner: {name: Random}\nsearchSpace: {x: {_type: choice, _value: [1]}}\n"
        "trialCommand: 'true'\ntrialConcurrency: 1\n"
        f"sinks: [{{kind: lines, folder: {tmp_path}/out}}]\n",
        "e.yml",
        tmp_path,
    )
    folder = new_folder(tmp_path)
    fill(folder, 4, 3)
    with Feeding(folder, config.sinks[0]) as feeding:
        feeding.step()
    assert {
        trial: one.ended for trial, one in read_lines(tmp_path / "out").items()
    } == dict.fromkeys(range(1, 5), True)


def test_what_it_raises_is_its_own_fault(lines: Path, tmp_path: Path) -> None:
    folder = new_folder(tmp_path)
    fill(folder, 1, 1)
    kind: Any = sink_kind("lines")
    section = kind.section(kind="lines", folder=str(tmp_path / "no" / "parent"))
    with (
        Feeding(folder, section) as feeding,
        pytest.raises(
            PermanentBackendError, match=r"the sink 'lines' fails at 'sink_for'.*FileNotFound"
        ) as failed,
    ):
        feeding.step()
    assert "lines-sink" in failed.value.hint


def test_one_for_another_version_is_refused_by_name(
    lines: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import lines_sink  # type: ignore[import-not-found]

    monkeypatch.setattr(lines_sink.LinesKind, "protocol", 7)
    refused = sink_kind("lines")
    assert isinstance(refused, NoSuchSink)
    assert "written for version 7 of the protocol of sinks" in refused.text


def read_files(folder: Path) -> dict[int, HeldRun]:
    """TensorBoard's files, read by nobody's code but this: frames, and the fields of scalars."""
    found = {}
    for path in folder.rglob("trial-*/*tfevents*"):
        data, at, steps = path.read_bytes(), 0, []
        while at < len(data):
            (length,) = struct.unpack_from("<Q", data, at)
            event = data[at + 12 : at + 12 + length]
            at += 16 + length
            if b"\x0a\x07default" in event:
                steps.append(event[10] if event[9:10] == b"\x10" else 0)
        assert at == len(data), "no half a record"
        found[int(path.parent.name[6:])] = HeldRun(steps, b"session_end_info" in data)
    return found


def try_tensorboard(kind: SinkKind[Any], tmp_path: Path) -> None:
    section = TensorBoardConfig(kind="tensorboard", folder="tb")
    try_sink(kind, section, tmp_path, lambda: read_files(tmp_path / "tb"))


@pytest.mark.parametrize("most_held", [0, tensorboard.MOST_HELD], ids=["at once", "many at once"])
def test_tensorboards_files_conform(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_held: int
) -> None:
    """Whether each call writes, or a flush does."""
    monkeypatch.setattr(tensorboard, "MOST_HELD", most_held)
    try_tensorboard(TensorBoardKind(), tmp_path)


def test_the_suite_finds_a_point_that_is_there_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tensorboard, "MOST_HELD", 0)
    monkeypatch.setattr(os, "ftruncate", lambda file, place: None)
    with pytest.raises(NotConforming, match=r"a crash . calls after a flush: trial"):
        try_tensorboard(TensorBoardKind(), tmp_path)


def test_the_suite_finds_what_is_left_of_an_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tensorboard, "remove_ours", lambda folder: None)
    with pytest.raises(BaseException, match=r"attempt|exists|dropped"):
        try_tensorboard(TensorBoardKind(), tmp_path)
