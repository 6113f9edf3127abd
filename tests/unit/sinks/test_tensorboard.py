"""TensorBoard's files: frames, columns and numbers; and what TensorBoard itself reads in them."""

from __future__ import annotations

import json
import math
import os
import random
import struct
from pathlib import Path
from typing import Any

import pytest

from dispatcher.sinks.conformance import END
from dispatcher.sinks.feeding import Feeding
from dispatcher.sinks.protocol import ExperimentRun, Point, Surroundings, TrialRun
from dispatcher.sinks.stored_points import NumberColumns, StoredPoints
from dispatcher.sinks.tensorboard import on_disk
from dispatcher.sinks.tensorboard.columns import Columns, declared_columns
from dispatcher.sinks.tensorboard.kind import TensorBoardConfig
from dispatcher.sinks.tensorboard.messages import DataType, scalar
from dispatcher.sinks.tensorboard.records import framed, masked_crc
from dispatcher.sinks.tensorboard.scalars import framed_scalars
from dispatcher.sinks.tensorboard.sink import TensorBoardSink
from tests.support.fed import SPACE, FedLife, fill, journal_of, new_folder
from tests.support.trackers import read_by

EXPERIMENT = ExperimentRun("tb-1", "tb", 1.0, Path(), {}, maximize=True)


def unmasked(masked: int) -> int:
    rotated = masked - 0xA282EAD8 & 0xFFFFFFFF
    return (rotated >> 17 | rotated << 15) & 0xFFFFFFFF


def test_the_checksum_is_castagnolis() -> None:
    """The values of RFC 3720, B.4."""
    assert unmasked(masked_crc(b"123456789")) == 0xE3069283
    assert unmasked(masked_crc(bytes(32))) == 0x8A9136AA
    assert unmasked(masked_crc(b"\xff" * 32)) == 0x62A8AB43


def test_many_records_are_summed_like_one() -> None:
    dice = random.Random(1)
    lengths = (0, 1, 3, 4, 5, 7, 40, 41, 300, 4095, 4096, 4097)
    records = [dice.randbytes(dice.choice(lengths)) for _ in range(300)]
    assert framed(records) == one_by_one(records)
    assert framed([]) == b""


def one_by_one(records: list[bytes]) -> bytes:
    framed_ones = b""
    for record in records:
        size = struct.pack("<Q", len(record))
        framed_ones += size + struct.pack("<I", masked_crc(size))
        framed_ones += record + struct.pack("<I", masked_crc(record))
    return framed_ones


@pytest.mark.parametrize("tag", ["default", "", "loss/é" + "x" * 200])
def test_columns_of_numbers_are_written_like_records_one_by_one(tag: str) -> None:
    """Mutations: a step of two bytes in the place of one; the largest 32-bit number as infinite;
    a run gets the records of its neighbour."""
    dice = random.Random(2)
    edges = [step for n in range(9) for step in (max(0, (1 << 7 * n) - 1), 1 << 7 * n)]
    largest = 3.4028234663852886e38
    values = [0.5, -0.0, 5e-324, 1e-40, 1e308, -1e308, math.inf, -math.inf, math.nan]
    values += [largest, -largest, math.nextafter(largest, math.inf)]
    many = []
    for length in (0, 3, len(edges), 0, 1, 12, 0):
        steps = sorted(dice.sample([*edges, 2**63 - 1], length))
        ats = [dice.choice((-1.0, 0.0, 1e300, dice.random() * 1e10)) for _ in steps]
        many.append(NumberColumns(steps, ats, [dice.choice(values) for _ in steps]))
    expected = [
        one_by_one([scalar(tag, at, step, v) for step, at, v in zip(*each, strict=True)])
        for each in many
    ]
    assert framed_scalars(tag, many) == expected
    assert framed_scalars(tag, []) == []


def test_points_as_stored_are_columns_only_if_all_are_plain_numbers() -> None:
    """Mutation: an object's other numbers are lost, since its own number is there."""
    rows: list[tuple[Any, ...]] = [(1, 5.0, "0.5", 0.5), (3, 6.0, '"0.25"', 0.25)]
    plain = StoredPoints(rows)
    assert plain.number_columns() == NumberColumns((1, 3), (5.0, 6.0), (0.5, 0.25))
    assert list(plain) == [Point(1, 5.0, 0.5, 0.5), Point(3, 6.0, "0.25", 0.25)]
    assert plain[-1] == next(iter(plain[1:])) == Point(3, 6.0, "0.25", 0.25)
    assert StoredPoints([]).number_columns() == NumberColumns((), (), ())
    for text, number in ((' {"default": 1, "a": 2}', 1.0), ("null", None), ("not json", None)):
        assert StoredPoints([*rows, (4, 7.0, text, number)]).number_columns() is None


def test_a_run_that_is_dropped_before_it_was_written_leaves_nothing(tmp_path: Path) -> None:
    """Mutation: what waits for the disk is written into a folder that was removed."""
    sink = TensorBoardSink(tmp_path / "tb", Surroundings(EXPERIMENT, None, {}))
    for number in (1, 2):
        run = TrialRun(number, 1, {"lr": 0.1}, None, 0, False, "local", 1.0)
        sink.begin(run, None)
        sink.points(run, [Point(1, 1.0, {"default": 1.0, "loss": 2.0}, 1.0)])
        sink.end(run, END)
    sink.drop([1])
    sink.flush()
    assert sorted(path.name for path in (tmp_path / "tb").glob("trial-*")) == ["trial-00002"]


@pytest.mark.parametrize(
    "value, written",
    [(0.5, 0.5), (1e308, math.inf), (-1e308, -math.inf), (math.inf, math.inf), (5e-324, 0.0)],
)
def test_numbers_beyond_32_bits(value: float, written: float) -> None:
    assert struct.unpack("<f", scalar("x", 1.0, 1, value)[-4:])[0] == written
    assert math.isnan(struct.unpack("<f", scalar("x", 1.0, 1, math.nan)[-4:])[0])


def test_columns_have_the_types_of_the_search_space() -> None:
    space = {
        **SPACE,
        "n": {"_type": "randint", "_value": [3, 9]},
        "flag": {"_type": "choice", "_value": [True, False]},
        "mixed": {"_type": "choice", "_value": [1, "a"]},
        "nested": {"_type": "choice", "_value": [{"_name": "x"}]},
        "broken": 7,
        "normal": {"_type": "normal", "_value": [0, 1]},
    }
    assert declared_columns(space) == {
        "lr": (DataType.FLOAT64, (0.001, 1.0)),
        "act": (DataType.STRING, ["relu", "tanh"]),
        "width": (DataType.FLOAT64, [16.0, 32.0]),
        "n": (DataType.FLOAT64, (3.0, 8.0)),
        "flag": (DataType.BOOL, [False, True]),
        "normal": (DataType.FLOAT64, None),
    }


def test_columns_do_not_depend_on_the_order_of_trials() -> None:
    """Mutation: the type of a column is that of its first value."""
    trials: list[dict[str, Any]] = [
        {"a": float(n), "b": "x" * (n % 3), "c": n % 2 == 0} for n in range(9)
    ]
    trials += [{"a": "text"}, {"late": 1.0}, {"c": 4.0}]
    encoded = []
    for seed in range(5):
        columns = Columns({}, None)
        random.Random(seed).shuffle(trials)
        for each in trials:
            columns.gather(each)
            columns = Columns({}, json.loads(json.dumps(columns.memo())))
        encoded.append(columns.encoded())
    assert all(each == encoded[0] for each in encoded)


def test_a_value_that_does_not_fit_has_a_column_of_its_own() -> None:
    columns = Columns(SPACE, None)
    assert columns.fitted({"lr": "auto", "act": "relu"}) == {"lr (other)": "auto", "act": "relu"}


def test_many_files_are_brought_to_disk_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: a commit of the file system for each of ten thousand trials."""
    synced: list[int] = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: (synced.append(file), real(file))[1])
    files = [tmp_path / str(n) / "file" for n in range(on_disk.MANY + 1)]
    for path in files:
        path.parent.mkdir()
        path.write_text("x")
    assert on_disk.sync_file_system(tmp_path)
    on_disk.bring_to_disk(files, tmp_path)
    assert synced == []
    on_disk.bring_to_disk(files[1:], tmp_path)
    assert len(synced) == 2 * on_disk.MANY + 1
    synced.clear()
    monkeypatch.setattr(on_disk, "sync_file_system", lambda folder: False)
    on_disk.bring_to_disk(files, tmp_path)
    assert len(synced) == 2 * len(files) + 1


def feed(folder: Path) -> Path:
    with Feeding(folder, TensorBoardConfig(kind="tensorboard")) as feeding:
        while feeding.step():
            pass
    return folder / "tb"


@pytest.mark.slow
def test_tensorboard_reads_what_was_reported(tmp_path: Path) -> None:
    """Its own loader and its HParams, of the release that is named in tests/support/trackers."""
    folder = new_folder(tmp_path)
    fill(folder, 12, 9)
    read = read_by("tensorboard", str(feed(folder)))
    names = [f"trial-{n:05d}" for n in range(1, 13)]
    assert sorted(read["scalars"]) == [".", *names]
    for number, name in enumerate(names, 1):
        scalars = read["scalars"][name]
        count = 3 if number % 5 == 0 else 9
        assert [step for step, _, _ in scalars["default"]] == list(range(1, count + 1))
        values = [value for _, _, value in scalars["loss"]]
        assert values == [float(s) for s in range(1, count + 1)]
        assert scalars["final"][0][2] == pytest.approx(1 / (number + 1))
    infos = {info["name"]: info for info in read["experiment"]["hparamInfos"]}
    assert sorted(infos) == ["act", "generation", "late/depth", "lr", "parent", "width"]
    assert infos["lr"]["domainInterval"] == {"minValue": 0.001, "maxValue": 1.0}
    assert infos["act"]["domainDiscrete"] == ["relu", "tanh"]
    groups = read["groups"]["sessionGroups"]
    assert [group["name"] for group in groups] == names, "sorted by the final value"
    assert groups[8]["hparams"] == {
        "lr": 0.1, "act": "tanh", "width": 16.0, "late/depth": 4.0, "parent": 6.0,
        "generation": 2.0,
    }  # fmt: skip
    assert {group["sessions"][0]["status"] for group in groups} == {"STATUS_SUCCESS"}


@pytest.mark.slow
def test_tensorboard_reads_names_and_numbers_of_any_kind(tmp_path: Path) -> None:
    folder = new_folder(tmp_path)
    hostile = {
        "../../etc/passwd": 1, "a\x00b\x1b[2J": 2, "x" * 10_000: 3, "<script>": "<img onerror=x>",
        "huge": 10**30, "lr": "not a number", "": True, "deep": [[1], {"a": 2}],
    }  # fmt: skip
    with journal_of(folder) as journal:
        life = FedLife(journal)
        life.propose(1, None, json.dumps(hostile))
        life.start(1)
        life.metrics(1, [1], value={"default": 0.5, **hostile, "big": 10**30})
        life.metrics(1, [2], value=1e300)
        life.finish(1, 3, 1, '{"default": 1, "a": {"b": 2}}')
    there = feed(folder)
    read = read_by("tensorboard", str(there))
    scalars = read["scalars"]["trial-00001"]
    assert [value for _, _, value in scalars["default"]] == [0.5, math.inf]
    assert scalars["big"][0][2] == pytest.approx(1e30)
    assert scalars["../../etc/passwd"][0][2] == 1.0
    assert scalars["final/a/b"][0][2] == 2.0
    (group,) = read["groups"]["sessionGroups"]
    assert group["hparams"]["lr (other)"] == "not a number"
    assert not any("\x1b" in name for name in group["hparams"])
    assert {path.parent.name for path in there.rglob("*tfevents*")} == {"tb", "trial-00001"}
