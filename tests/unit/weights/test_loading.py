"""Loading into what exists: by name, in part, with a report instead of an exception."""

from __future__ import annotations

import ctypes
import mmap
import os
from pathlib import Path

import numpy as np
import pytest

from trial_runtime.errors import WeightsError, WeightsMismatch, WeightsNotFound
from trial_runtime.weights import Form, MatchReport, export, load, save
from trial_runtime.weights.loading.matching import match


def test_arrays_are_filled_in_place(root: Path) -> None:
    save({"a": np.arange(4.0), "b": np.ones((2, 2))}, root / "1")
    into = {"a": np.zeros(4), "b": np.zeros((2, 2))}
    kept = into["a"]
    report = load(root / "1", into)
    assert report.complete
    assert kept.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert into["b"].tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert report.bytes_read == 4 * 8 + 4 * 8


def test_the_report_names_what_does_not_fit(root: Path) -> None:
    save({"same": np.ones(2), "wide": np.ones((4, 2)), "gone": np.ones(1)}, root / "1")
    into = {"same": np.zeros(2), "wide": np.zeros((3, 3)), "new": np.zeros(1)}
    report = load(root / "1", into)
    assert report.loaded == ("same",)
    assert report.missing == ("new",)
    assert report.unexpected == ("gone",)
    (reshaped,) = report.reshaped
    assert (reshaped.stored.shape, reshaped.wanted.shape, reshaped.copied) == (
        (4, 2),
        (3, 3),
        False,
    )
    assert not into["wide"].any()
    assert str(report) == "1 loaded, 1 missing, 1 unexpected, 1 reshaped"


def test_overlap_copies_the_common_corner(root: Path) -> None:
    save({"w": np.arange(1.0, 9.0).reshape(4, 2), "flat": np.ones(4)}, root / "1")
    into = {"w": np.zeros((3, 3)), "flat": np.zeros((2, 2))}
    report = load(root / "1", into, resize="overlap")
    assert into["w"].tolist() == [[1, 2, 0], [3, 4, 0], [5, 6, 0]]
    assert {r.name: r.copied for r in report.reshaped} == {"w": True, "flat": False}
    assert not into["flat"].any()


def test_strict_refuses_before_anything_is_copied(root: Path) -> None:
    save({"a": np.ones(2), "b": np.ones(2)}, root / "1")
    into = {"a": np.zeros(2)}
    with pytest.raises(WeightsMismatch, match="unexpected: b"):
        load(root / "1", into, strict=True)
    assert not into["a"].any()


def test_types_of_one_kind_are_converted_and_others_are_not(root: Path) -> None:
    save(
        {"half": np.ones(2, np.float16), "real": np.full(2, 1.5), "n": np.ones(2, int)}, root / "1"
    )
    into = {"half": np.zeros(2, np.float32), "real": np.zeros(2, np.int64), "n": np.zeros(2)}
    report = load(root / "1", into)
    assert set(report.converted) == {"half", "n"}
    assert [r.name for r in report.reshaped] == ["real"]
    assert into["half"].tolist() == [1.0, 1.0]
    assert into["real"].tolist() == [0, 0]


def test_strided_arrays_can_be_loaded_into(root: Path) -> None:
    save({"w": np.arange(6.0).reshape(2, 3)}, root / "1")
    into = np.zeros((3, 2))
    load(root / "1", {"w": into.T})
    assert into.T.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_a_read_only_array_is_refused(root: Path) -> None:
    save({"w": np.ones(2)}, root / "1")
    frozen = np.zeros(2)
    frozen.flags.writeable = False
    with pytest.raises(WeightsError, match="read-only"):
        load(root / "1", {"w": frozen})


def test_names_choose_by_pattern(root: Path) -> None:
    save({"enc": {"w": np.ones(1), "b": np.ones(1)}, "dec": {"w": np.ones(1)}}, root / "1")
    assert set(load(root / "1", names="enc.*")) == {"enc.w", "enc.b"}
    assert set(load(root / "1", names=["*.b", "dec.?"])) == {"enc.b", "dec.w"}
    into = {"enc": {"w": np.zeros(1), "b": np.zeros(1)}}
    report = load(root / "1", into, names=["enc.w"])
    assert report.loaded == ("enc.w",)
    assert report.missing == ()
    assert report.unexpected == ()
    assert into["enc"]["b"][0] == 0


def test_a_key_takes_one_part_of_the_state(root: Path) -> None:
    state = {"model": {"w": np.ones(2)}, "opt": {"m": np.ones(2), "lr": 0.1}, "step": 7}
    save(state, root / "1")
    assert load(root / "1", key="opt")["lr"] == 0.1
    assert load(root / "1", key="step") == 7
    assert set(load(root / "1", key="opt", names="*")) == {"m"}
    into = {"w": np.zeros(2)}
    report = load(root / "1", into, key="model")
    assert (report.loaded, report.unexpected, report.key) == (("w",), (), "model")
    with pytest.raises(WeightsError, match="model, opt, step"):
        load(root / "1", key="modle")


def test_keys_may_hold_dots_themselves(root: Path) -> None:
    save({"a.b": {"c": 1}, "a": {"b": 2, "x": {"y": 3}}}, root / "1")
    assert load(root / "1", key="a.b.c") == 1
    assert load(root / "1", key="a.x.y") == 3


def test_the_part_that_is_meant_is_found_when_only_one_fits(root: Path) -> None:
    save({"model": {"w": np.ones(2)}, "opt": {"m": np.ones(2)}}, root / "1")
    assert load(root / "1", {"w": np.zeros(2)}).key == "model"
    save({"ema": {"w": np.ones(2)}, "net": {"w": np.ones(2)}}, root / "2")
    ambiguous = load(root / "2", {"w": np.zeros(2)})
    assert (ambiguous.key, ambiguous.missing) == ("", ("w",))


def test_nothing_there_is_said_at_once(root: Path) -> None:
    with pytest.raises(WeightsNotFound):
        load(root / "1")


def test_a_bare_safetensors_file_is_mapped_too(root: Path, tmp_path: Path) -> None:
    save({"model": {"w": np.arange(3.0)}, "opt": {"m": np.ones(9)}}, root / "1")
    exported = export(root / "1", root / "net.safetensors", key="model")
    assert exported.tensors == 1
    into = {"w": np.zeros(3)}
    assert load(root / "net.safetensors", into).complete
    assert into["w"].tolist() == [0.0, 1.0, 2.0]
    assert list(load(root / "net.safetensors")) == ["w"]


def test_match_is_decided_by_forms_alone() -> None:
    f = lambda *shape: Form("F32", shape)  # noqa: E731
    report = match({"a": f(2), "b": f(3)}, {"a": f(2), "b": f(4), "c": f(1)})
    assert isinstance(report, MatchReport)
    assert (report.loaded, report.missing) == (("a",), ("c",))
    assert not report.complete


def resident_bytes(path: Path) -> int:
    """How much of a file the page cache holds."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        mapping = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY)
    pages = -(-size // mmap.PAGESIZE)
    flags = (ctypes.c_ubyte * pages)()
    address = ctypes.addressof(ctypes.c_char.from_buffer(mapping))
    assert libc.mincore(ctypes.c_void_p(address), ctypes.c_size_t(size), flags) == 0
    return sum(flag & 1 for flag in flags) * mmap.PAGESIZE


def test_a_tenth_of_the_tensors_reads_at_most_12_percent_of_the_file(root: Path) -> None:
    generator = np.random.default_rng(0)
    state = {f"l{i:02}": generator.standard_normal(1 << 17) for i in range(40)}  # 1 MiB each
    save(state, root / "1")
    (name,) = [n for n in os.listdir(root / "1") if n != "manifest.json"]
    file = root / "1" / name
    fd = os.open(file, os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)
    if resident_bytes(file) > 0.01 * file.stat().st_size:
        pytest.skip("this file system keeps files in memory whatever it is told")
    wanted = ["l03", "l17", "l18", "l39"]
    into = {name: np.zeros(1 << 17) for name in wanted}
    report = load(root / "1", into)
    assert report.complete
    assert report.bytes_read == 4 << 20
    assert resident_bytes(file) <= 0.12 * file.stat().st_size
    for name in wanted:
        np.testing.assert_array_equal(into[name], state[name])
