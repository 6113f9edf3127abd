"""Data of cells reaches another process as it is, once, without a pickle, or is refused by name."""

from __future__ import annotations

import math
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dispatcher.errors import UserError
from dispatcher.notebook import values
from dispatcher.notebook.misfit import CannotTravel
from dispatcher.notebook.values import CellValues
from tests.support.trackers import borrow
from tests.unit.notebook.cells import Cells, Elsewhere
from trial_runtime.cells import CellData, CellDataError, from_plain


def passed(value: Any, folder: Path) -> Any:
    """The value as another process gets it."""
    kept = CellValues()
    text = kept.expression(value, lambda one: one.__name__)
    (folder / "data").mkdir(exist_ok=True)
    for name, content in kept.files.items():
        (folder / "data" / name).write_bytes(content)
    return eval(text, {"_bequeath": CellData(str(folder / "module.py"))})


@pytest.mark.parametrize(
    "array",
    [
        np.arange(12.0).reshape(3, 4),
        np.asfortranarray(np.arange(12, dtype=">i2").reshape(3, 4)),
        np.arange(12)[::-2],
        np.array([1.0, np.nan, np.inf, -0.0]),
        np.zeros((0, 3), np.float32),
        np.array(7),
        np.array(["a", "ä"]),
        np.array(["2026-11-29", "NaT"], "datetime64[D]"),
        np.array([(1, 2.0)], [("a", "i4"), ("b", "f8")]),
        np.ones(3, bool),
        np.array([1 + 2j]),
    ],
    ids=str,
)
def test_arrays(array: np.ndarray[Any, Any], tmp_path: Path) -> None:
    there = passed(array, tmp_path)
    assert there.dtype == array.dtype
    assert there.shape == array.shape
    assert there.tobytes() == array.tobytes()
    assert there.flags.writeable


@pytest.mark.parametrize(
    "value",
    [
        None, True, 3, -(1 << 5000), 2.5, "a'\n\ud800", b"\0\xff", 1 + 2j, Path("a/b"),
        (1,), (), [], {}, set(), frozenset({1, 2}), {"$": 1, 2: (3,)}, {(1, 2): [{"a": {b"x"}}]},
        np.float32(0.1), np.int64(-3), np.bool_(True), np.float64("nan"),
        np.datetime64("2026-11-29"),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
@pytest.mark.parametrize("many", [1, 2_000])
def test_plain_values_short_and_long(value: Any, many: int, tmp_path: Path) -> None:
    """With many of them they are a file, and no literal."""
    there = passed([value] * many, tmp_path)
    assert repr(there) == repr([value] * many)
    assert type(there[0]) is type(value)


def test_numbers_that_no_literal_stands_for(tmp_path: Path) -> None:
    for many in (1, 2_000):
        there = passed([math.nan, math.inf, -math.inf, -0.0, complex(math.nan, 1)] * many, tmp_path)
        assert repr(there[:5]) == "[nan, inf, -inf, -0.0, (nan+1j)]"


def test_containers_with_arrays_keep_their_form(tmp_path: Path) -> None:
    data = {"train": (np.arange(3), [1]), ("a", 1): [np.float32(2.0), {"x": np.ones(2)}]}
    there = passed(data, tmp_path)
    assert repr(there) == repr(data)


def test_types_of_others_in_a_container_are_imported(tmp_path: Path) -> None:
    choices = {"mean": np.mean, "type": np.float32, "dtype": np.dtype("f4"), "module": math}
    assert passed(choices, tmp_path) == choices


@pytest.mark.torch
def test_tensors(tmp_path: Path) -> None:
    import torch

    for one in (
        torch.arange(6.0).reshape(2, 3).t(),
        torch.tensor(3, dtype=torch.int8),
        torch.zeros(0, 4),
        torch.tensor([1.5, float("nan")], dtype=torch.bfloat16),
        torch.tensor([True, False]),
        torch.tensor([1 + 2j]).conj(),
        torch.ones(3, requires_grad=True),
    ):
        there = passed(one, tmp_path)
        assert there.dtype == one.dtype
        assert there.requires_grad == one.requires_grad
        assert torch.equal(torch.nan_to_num(there), torch.nan_to_num(one))
        assert there.shape == one.shape
    assert passed({"d": torch.float16, "on": torch.device("cpu")}, tmp_path) == {
        "d": torch.float16, "on": torch.device("cpu"),
    }  # fmt: skip


@pytest.mark.torch
def test_tensors_that_cannot_be_copied_say_what_to_write() -> None:
    import torch

    for one, hint in (
        (torch.nn.Parameter(torch.ones(2)), "x.detach()"),
        (torch.ones(2, requires_grad=True) * 2, "x.detach()"),
        (torch.ones(2, 2).to_sparse(), "x.to_dense()"),
        (torch.ones(2, device="meta"), "x.cpu()"),
        (torch.nn.Linear(2, 2), "state_dict"),
    ):
        with pytest.raises(CannotTravel) as refused:
            CellValues().expression(one, lambda each: each.__name__)
        assert hint in refused.value.hint


def test_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    borrow("frames", monkeypatch)
    import pandas

    frame = pandas.DataFrame(
        {
            "n": [1, 2, 3],
            "x": [0.5, float("nan"), 1.0],
            "text": ["a", None, "ä"],
            "old": pandas.Series(["a", None, float("nan")], dtype=object),
            "at": pandas.to_datetime(["2026-01-01", "2026-01-02", None]),
            "kind": pandas.Categorical(["u", "v", "u"], categories=["v", "u"], ordered=True),
            7: [True, False, True],
        },
        index=pandas.Index(["r", "s", "t"], name="row"),
    )
    pandas.testing.assert_frame_equal(passed(frame, tmp_path), frame)
    numbered = pandas.DataFrame(np.eye(3))[::2]
    for one in (frame.reset_index(), frame[:0], frame.iloc[:, :0], pandas.DataFrame(), numbered):
        pandas.testing.assert_frame_equal(passed(one, tmp_path), one)
    pandas.testing.assert_series_equal(passed(frame["x"], tmp_path), frame["x"])
    several = frame.set_index(["n", "text"])
    lacking = pandas.DataFrame(
        {"s": pandas.array(["a", pandas.NA], dtype="string"), "o": ["a", pandas.NaT]}, dtype=object
    )
    assert passed(lacking, tmp_path).isna().equals(lacking.isna())
    nullable = pandas.Series(["a", pandas.NA], dtype="string")
    pandas.testing.assert_series_equal(passed(nullable, tmp_path), nullable)
    objects = pandas.DataFrame({"o": [[1], object()]})
    arrays = pandas.DataFrame({"o": [np.zeros(2), np.ones(2)]})
    for wrong, reason in (
        (several, "several levels"),
        (objects, "column 'o' holds objects"),
        (arrays, "column 'o' holds objects of the class ndarray"),
    ):
        with pytest.raises(CannotTravel, match=reason):
            passed(wrong, tmp_path)


def test_equal_data_is_one_file() -> None:
    kept = CellValues()
    first = kept.expression(np.arange(5), lambda one: "")
    assert kept.expression([np.arange(5)], lambda one: "") == f"[{first}]"
    assert len(kept.files) == 1
    assert kept.expression(np.arange(6), lambda one: "") != first
    assert len(kept.files) == 2


class Thing:
    """No data."""


def _cyclic() -> list[Any]:
    one: list[Any] = [1]
    one.append({"in": one})
    return one


def _deep() -> list[Any]:
    one: list[Any] = []
    for _ in range(5_000):
        one = [one]
    return one


@pytest.mark.parametrize(
    "value, reason, hint",
    [
        (np.array([Thing(), None]), "objects of Python", "x.astype"),
        (np.array([(1, None)], [("a", "i4"), ("b", "O")]), "objects of Python", "x.astype"),
        (np.ma.masked_array([1, 2], [True, False]), "a MaskedArray", "numpy.asarray(x)"),
        (Thing(), "an object of the class Thing", "in the function"),
        ([Thing()], "an object of the class Thing", "in the function"),
        ((n for n in range(3)), "a generator", "list(x)"),
        (iter([1]), "an object of the class list_iterator", ""),
        (threading.Lock(), "an object of the class lock", ""),
        (_cyclic(), "contains itself", ""),
        (_deep(), "more than 50 levels", ""),
        ({"f": lambda p: p}, "a function without a name", "def"),
        ({1, Thing}, "holds more than plain values", "a list"),
        (type("Dict", (dict,), {})(a=1), "an object of the class Dict", ""),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_data_is_refused_with_advice(value: Any, reason: str, hint: str) -> None:
    with pytest.raises(CannotTravel) as refused:
        CellValues().expression(value, lambda one: "Thing")
    assert reason in refused.value.message
    assert hint in refused.value.hint


def test_the_same_list_twice_is_no_cycle(tmp_path: Path) -> None:
    one = [1]
    assert passed([one, one], tmp_path) == [[1], [1]]


def test_a_huge_array_is_refused_before_it_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutation: the bound is looked at when the bytes are there: this array has 8 TiB of them."""
    huge = np.lib.stride_tricks.as_strided(np.zeros(1), shape=(1 << 40,), strides=(0,))
    with pytest.raises(CannotTravel, match="MiB, and one value may have 256 MiB"):
        CellValues().expression(huge, lambda one: "")
    monkeypatch.setattr(values, "MOST_IN_ALL", 10_000)
    kept = CellValues()
    kept.expression(np.zeros(1_000), lambda one: "")
    with pytest.raises(CannotTravel, match="of data together"):
        kept.expression(np.ones(1_000), lambda one: "")
    with pytest.raises(CannotTravel, match="members"):
        kept.expression([0] * 2_000_001, lambda one: "")


def test_long_lists_of_numbers_of_numpys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutation: each number is a call in the source, 40 MB for a million."""
    for losses in ([np.float32(n) for n in range(3_000)], (np.bool_(True),) * 3_000):
        text = CellValues().expression(losses, lambda one: "")
        assert len(text) < 200
        there = passed(losses, tmp_path)
        assert there == losses
        assert {type(there), type(there[0])} == {type(losses), type(losses[0])}
    monkeypatch.setattr(values, "MOST_SOURCE", 1_000)
    for mixed in ([np.float32(1), np.int8(1)] * 600, {n: np.int8(1) for n in range(600)}):
        with pytest.raises(CannotTravel, match="members are no plain values"):
            CellValues().expression(mixed, lambda one: "")


def test_files_are_as_many_as_a_folder_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "MOST_FILES", 5)
    with pytest.raises(CannotTravel, match="more than 5 arrays"):
        CellValues().expression([np.array([n]) for n in range(6)], lambda one: "")


def test_damage_and_absence_are_named(tmp_path: Path) -> None:
    """Mutation: what is read is not compared with its name."""
    kept = CellValues()
    kept.expression(np.arange(5), lambda one: "")
    ((name, content),) = kept.files.items()
    (tmp_path / "data").mkdir()
    data = CellData(str(tmp_path / "m.py"))
    with pytest.raises(CellDataError, match="cannot be read: No such file"):
        data.array(name)
    (tmp_path / "data" / name).write_bytes(content[:-1] + b"\1")
    with pytest.raises(CellDataError, match="is damaged"):
        data.array(name)


def test_marks_of_ours_in_a_users_mapping_stay_as_they_are() -> None:
    """Mutation: a user's key '$' is read as one of ours."""
    assert from_plain({"$": "dict", "v": [["$", "tuple"], ["v", [1]]]}) == {"$": "tuple", "v": [1]}


def test_an_error_names_variable_function_line_and_advice(
    cells: Cells, elsewhere: Elsewhere
) -> None:
    cells.run("import threading\n\nlock = threading.Lock()\n")
    names = cells.run("x = 1\n\ndef trial(p):\n    y = x\n    with lock:\n        return y\n")
    with pytest.raises(UserError) as refused:
        elsewhere.write(names["trial"])
    assert refused.value.where == "Cell [2], line 5"
    assert "'trial' uses the global 'lock' (lock), which another process" in refused.value.message
    assert "make it in the function" in refused.value.hint
    names = cells.run("rows = (r for r in [1])\ndef trial(p):\n    return list(rows)\n")
    with pytest.raises(UserError, match="Cell \\[3\\], line 3") as refused:
        elsewhere.write(names["trial"])
    assert refused.value.hint == "make a list of it: rows = list(rows)"


def test_objects_that_stand_for_others_are_refused_like_others(
    cells: Cells, elsewhere: Elsewhere
) -> None:
    """Mutation: their attributes are followed without an end, or what these raise is raised."""
    cells.run(
        "class Any:\n    def __init__(self, above=None):\n        self.above = above\n"
        "    def __getattr__(self, name):\n        return Any(self)\n"
        "class Unbound:\n    def __getattr__(self, name):\n        raise RuntimeError(name)\n"
        "    def __repr__(self):\n        raise RuntimeError\n"
        "expression, request = Any(), Unbound()\n"
    )
    for name, kind in (("expression", "Any"), ("request", "Unbound")):
        names = cells.run(f"def trial(p):\n    return {name}\n")
        with pytest.raises(UserError, match=f"it is an object of the class {kind}, and no data"):
            elsewhere.write(names["trial"])


def test_globals_of_cells(cells: Cells, elsewhere: Elsewhere) -> None:
    """One that is called like a module of Python, or like a name of ours, is the user's."""
    cells.run("import numpy as np\nimport math\n")
    cells.run(
        "X = np.arange(6.0)\nY = X\njson = np.ones(2)\nos = {'sep': X}\nsys = 3\nlist = [1]\n"
    )
    cells.run("numpy = 'mine'\nBIG = {i: (i, str(i)) for i in range(1000)}\n")
    names = cells.run(
        "def trial(p):\n"
        "    total = float(X.sum() + Y[0] + json.sum() + os['sep'][1] + sys)\n"
        "    return total, numpy, BIG[999], list\n"
    )
    there = elsewhere.names(names["trial"])
    assert there["trial"]({}) == (21.0, "mine", (999, "999"), [1])
    assert there["trial"]({}) == names["trial"]({})
    assert [each.rpartition(".")[2] for each in elsewhere.data()].count("npy") == 2


def test_what_changes_later_is_not_seen(cells: Cells, elsewhere: Elsewhere) -> None:
    names = cells.run("import numpy as np\nX = np.zeros(3)\ndef trial(p):\n    return X.sum()\n")
    first = elsewhere.write(names["trial"])
    names["X"] += 1
    second = elsewhere.write(names["trial"])
    assert elsewhere.imported(first)["trial"]({}) == 0
    assert elsewhere.imported(second)["trial"]({}) == 3
    assert first.read_text() != second.read_text()
