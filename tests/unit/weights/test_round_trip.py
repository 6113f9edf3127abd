"""What was saved comes back, exactly."""

from __future__ import annotations

import math
import os
import random
import struct
from collections import Counter, OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trial_runtime.errors import CorruptWeights, WeightsError
from trial_runtime.weights import load, save
from trial_runtime.weights.format.skeleton import MAX_DEPTH, flatten, rebuild

_KEYS = st.one_of(st.text(), st.integers(), st.booleans(), st.none(), st.floats(allow_nan=False))
_SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=-(2**140), max_value=2**140),
    st.floats(),
    st.text(),
    st.binary(),
    st.complex_numbers(),
)


def _arrays() -> st.SearchStrategy[Any]:
    shapes = st.lists(st.integers(0, 4), max_size=3).map(tuple)
    dtypes = st.sampled_from(
        ["<f8", "<f4", "<f2", "<i8", "|i1", "<u2", "|u1", "|b1", "<c8", "<c16"]
    )
    return st.builds(
        lambda shape, dtype, seed: (
            np.random.default_rng(seed).integers(0, 2, size=shape).astype(dtype)
        ),
        shapes,
        dtypes,
        st.integers(0, 9),
    )


_STATES = st.recursive(
    st.one_of(_SCALARS, _arrays()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(_KEYS, inner, max_size=4),
        st.dictionaries(st.text(), inner, max_size=3).map(OrderedDict),
    ),
    max_leaves=12,
)


def same(a: Any, b: Any) -> bool:
    """Equal in type, order and bits (NaN equals itself, 1 is not True)."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, dict):
        return len(a) == len(b) and all(
            same(k, m) and same(v, w) for (k, v), (m, w) in zip(a.items(), b.items(), strict=True)
        )
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, float):
        return struct.pack(">d", a) == struct.pack(">d", b)
    if isinstance(a, complex):
        return same(a.real, b.real) and same(a.imag, b.imag)
    return bool(a == b)


@settings(max_examples=60, deadline=None)
@given(state=_STATES)
def test_any_nested_state_comes_back(state: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("w") / "1"
    published = save(state, path)
    assert same(load(path, digest=published.digest), state)


def test_same_tells_apart_what_equality_does_not() -> None:
    assert not same(1, True)
    assert not same(0.0, -0.0)
    assert not same((1,), [1])
    assert not same({"a": 1, "b": 2}, {"b": 2, "a": 1})
    assert same(math.nan, math.nan)


def test_generators_of_random_numbers_continue(root: Path) -> None:
    legacy = np.random.RandomState(3)
    modern = np.random.default_rng(4)
    python = random.Random(5)
    save(
        {
            "legacy": legacy.get_state(),
            "modern": modern.bit_generator.state,  # holds 128-bit integers
            "python": python.getstate(),
        },
        root / "1",
    )
    state = load(root / "1")
    again_legacy, again_modern, again_python = (
        np.random.RandomState(),
        np.random.default_rng(),
        random.Random(),
    )
    again_legacy.set_state(state["legacy"])
    again_modern.bit_generator.state = state["modern"]
    again_python.setstate(state["python"])
    assert again_legacy.random_sample() == legacy.random_sample()
    assert again_modern.random() == modern.random()
    assert again_python.random() == python.random()


def test_scalars_of_numpy_and_odd_containers(root: Path) -> None:
    state = {
        "best": np.float64(0.1),
        "seen": np.int32(-7),
        "milestones": Counter({30: 1, 80: 2}),
        "set": {3, 1, 2},
        "empty": {},
        "bytes": bytearray(b"\x00\xff"),
        "$": "a key that the format uses itself",
    }
    back = load_saved(state, root)
    assert back == state
    assert type(back["best"]) is np.float64
    assert type(back["milestones"]) is Counter
    assert type(back["bytes"]) is bytearray


def load_saved(state: Any, root: Path) -> Any:
    save(state, root / "1")
    return load(root / "1")


def test_names_that_collide_stay_apart(root: Path) -> None:
    state = {
        "a": {"b": np.array([1.0])},
        "a.b": np.array([2.0]),
        1: np.array([3.0]),
        "1": np.array([4.0]),
        "__metadata__": np.array([5.0]),
    }
    assert same(load_saved(state, root), state)


def test_strided_and_foreign_arrays_keep_their_values(root: Path) -> None:
    base = np.arange(24, dtype=np.float32).reshape(4, 6)
    state = {"t": base.T, "cut": base[::2, 1::3], "big": base.astype(">f4"), "rev": base[::-1]}
    back = load_saved(state, root)
    for name, array in state.items():
        np.testing.assert_array_equal(back[name], array)


def test_loaded_arrays_can_be_changed_and_the_file_does_not(root: Path) -> None:
    save({"w": np.zeros(5)}, root / "1")
    first = load(root / "1")["w"]
    first += 1
    assert load(root / "1")["w"].tolist() == [0.0] * 5


def test_arrays_that_share_memory_are_stored_once_and_share_again(root: Path) -> None:
    shared = np.arange(1000, dtype=np.float64)
    published = save({"in": shared, "out": shared, "other": shared.copy()}, root / "1")
    assert published.bytes_total == 2 * shared.nbytes
    back = load(root / "1")
    assert back["in"] is back["out"]
    back["in"][0] = 99.0
    assert back["other"][0] == 0.0


def test_empty_states_need_no_data_file(root: Path) -> None:
    save({"step": 1, "nothing": np.zeros((0, 3), np.float16)}, root / "1")
    assert os.listdir(root / "1") == ["manifest.json"]
    assert load(root / "1")["nothing"].shape == (0, 3)


@pytest.mark.parametrize(
    "value",
    [object(), lambda: None, np.array(["text"]), np.array([object()]), np.ma.masked_array([1.0])],
    ids=["object", "function", "text array", "object array", "masked array"],
)
def test_what_cannot_be_stored_is_named_with_its_place(value: object, root: Path) -> None:
    with pytest.raises(WeightsError) as caught:
        save({"model": {"odd": value}}, root / "1")
    assert "odd" in caught.value.where
    assert not (root / "1").exists()


def test_a_state_that_contains_itself_is_refused(root: Path) -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(WeightsError, match="contains itself"):
        save(loop, root / "1")


def test_text_that_is_no_unicode_is_refused(root: Path) -> None:
    with pytest.raises(WeightsError, match="Unicode"):
        save({"name": "\ud800"}, root / "1")


@pytest.mark.parametrize(
    "node",
    [
        {"$": "function", "v": "os.system"},
        {"$": "float", "v": "00"},
        {"$": "int", "v": "f" * 5000},
        {"$": "dtype", "v": "load"},
        {"$": "numpy", "t": "O", "v": "00"},
        {"$": "dict", "v": [[[], 1]]},
        {"$": "dict"},
    ],
)
def test_a_forged_skeleton_is_an_error_and_nothing_else(node: Any) -> None:
    if node["$"] == "dtype":
        pytest.importorskip("torch")
    with pytest.raises(CorruptWeights):
        rebuild(node, lambda name: name)


def test_depth_just_below_the_limit_is_fine(root: Path) -> None:
    state: Any = 1
    for _ in range(MAX_DEPTH):
        state = [state]
    skeleton, _ = flatten(state)
    assert rebuild(skeleton, lambda name: name) == state
    assert load_saved(state, root) == state
