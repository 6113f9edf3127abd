"""Exports: all values that trials reported, and Parquet, which needs a library of its own."""

from __future__ import annotations

import builtins
import csv
import io
from pathlib import Path
from typing import Any

import pytest

from dispatcher.errors import UserError
from dispatcher.queries.parquet import parquet_of
from tests.support.made_store import Told, made_store
from tests.support.trackers import borrow
from tests.unit.cli.conftest import Shell


def shown(over: Shell) -> list[tuple[int, int, int, bool, Any]]:
    """What ``trial show`` has of the first trials, one by one."""
    found = []
    for trial in range(12):
        for one in over("trial", "show", trial, "--json").json()["metrics"]:
            found.append((trial, one["attempt"], one["seq"], one["final"], one["number"]))
    return found


def test_each_value_that_was_reported_is_a_row(
    over: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: a row is lost, or comes twice, where one page of rows ends."""
    monkeypatch.setattr("dispatcher.queries.reported_values.AT_ONCE", 3)
    rows = over("experiment", "export", "--metrics").json()
    assert list(rows[0])[:7] == ["trial", "attempt", "seq", "at", "final", "counted", "value"]
    few = [row for row in rows if row["trial"] < 12]
    found = [tuple(row[k] for k in ("trial", "attempt", "seq", "final", "value")) for row in few]
    assert found == shown(over)
    assert any(not row["final"] for row in rows)
    said = over("experiment", "export", "--metrics", "--format", "csv")
    table = list(csv.DictReader(io.StringIO(said.out)))
    assert [(int(row["trial"]), int(row["seq"])) for row in table] == [
        (row["trial"], row["seq"]) for row in rows
    ]


def test_values_that_are_objects_have_a_column_for_each_name(
    tmp_path: Path, bequeath: Shell
) -> None:
    told: list[Told] = [({"a": 1}, {"default": 0.5, "loss": {"train": 2.0}, "note": "=1+1"}, None)]
    folder = made_store(tmp_path, told)
    *_, row = bequeath("experiment", "export", folder, "--metrics").json()
    assert row["final"]
    assert row["value"] == 0.5
    assert row["metrics.loss.train"] == 2.0
    text = bequeath("experiment", "export", folder, "--metrics", "--format", "csv").out
    assert "metrics.loss.train" in text.splitlines()[0]
    assert "'=1+1" in text  # no formula in a spreadsheet


def test_a_missing_library_is_named_before_anything_is_read(
    over: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    said = over("experiment", "export", "--format", "parquet", "--out", tmp_path / "x.parquet")
    assert said.code == 3
    assert said.err.splitlines() == [
        "Parquet needs pyarrow, which is not installed",
        "  pip install 'bequeath[parquet]', or choose --format csv",
    ]
    assert not (tmp_path / "x.parquet").exists()


def test_the_ending_of_the_file_says_which_format_it_has(over: Shell, tmp_path: Path) -> None:
    """Mutation: JSON is written into a file that is called .csv."""
    for name, words, begins in (
        ("a.csv", (), "trial,"),
        ("a.CSV", (), "trial,"),
        ("a.csv", ("--format", "json"), "["),
        ("a.json", (), "["),
        ("a.txt", (), "["),
    ):
        assert over("experiment", "export", *words, "--out", tmp_path / name).code == 0
        assert (tmp_path / name).read_text().startswith(begins)


def test_a_parquet_file_has_what_the_rows_have(
    over: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    borrow("frames", monkeypatch)
    from pyarrow import parquet

    for words in ((), ("--metrics",)):
        rows = over("experiment", "export", *words).json()
        file = tmp_path / "x.parquet"
        said = over("experiment", "export", *words, "--format", "parquet", "--out", file)
        assert said.code == 0, said.err
        read = parquet.read_table(file).to_pylist()
        assert [row["trial"] for row in read] == [row["trial"] for row in rows]
        assert [row["value"] for row in read] == [row["value"] for row in rows]
        for name, value in rows[5].items():
            if isinstance(value, str | int | float | None):
                assert read[5][name] == value, name


def test_a_column_in_which_kinds_meet_holds_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutations: the library's own error; a number too large is cut."""
    borrow("frames", monkeypatch)
    import pyarrow
    from pyarrow import parquet

    rows = [
        {"a": 1, "b": 1, "c": True, "d": "x", "e": [1, {"f": None}], "g": 1, "h": None},
        {"a": 2, "b": 0.5, "c": None, "d": 3, "e": "plain", "g": 1 << 70, "i": 7},
    ]
    content = parquet_of(rows, ["b", "a"])
    table = parquet.read_table(pyarrow.BufferReader(content))
    assert table.column_names[:2] == ["b", "a"]
    assert table.to_pylist() == [
        {"b": 1.0, "a": 1, "c": True, "d": "x", "e": '[1, {"f": null}]', "g": "1", "h": None,
         "i": None},
        {"b": 0.5, "a": 2, "c": None, "d": "3", "e": "plain", "g": str(1 << 70), "h": None, "i": 7},
    ]  # fmt: skip
    assert parquet.read_table(pyarrow.BufferReader(parquet_of([], ["a"]))).column_names == ["a"]
    huge = parquet_of([{"a": 0.5}, {"a": 10**400}], [])
    assert parquet.read_table(pyarrow.BufferReader(huge)).column("a").to_pylist() == [
        "0.5",
        str(10**400),
    ]


def test_a_picture_has_the_ending_of_its_format(tmp_path: Path) -> None:
    """A file that was called plot.pdf had a PNG in it."""
    from dispatcher.cli.plot import draw

    with pytest.raises(UserError, match=r"plot\.pdf: pictures are PNG.*\n.*name it plot\.png"):
        draw("progress", None, tmp_path / "plot.pdf", tmp_path)
