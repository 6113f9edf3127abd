"""What ``generate_parameters`` may return, and how the rest is refused."""

from __future__ import annotations

import enum
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dispatcher.core.resources import Needs
from dispatcher.tuner_host.plain_values import NotJson, plain
from dispatcher.tuner_host.proposals import Nonsense, ProposalRules, propose, seen_by_trial
from tuners import with_needs


class Colour(str, enum.Enum):  # noqa: UP042 - what authors write, with its odd str()
    RED = "red"


class Size(enum.IntEnum):
    BIG = 3


@pytest.mark.parametrize(
    "returned, expected",
    [
        ({"a": 1, "b": [1.5, None, True, "é"]}, {"a": 1, "b": [1.5, None, True, "é"]}),
        ((1, (2, 3)), [1, [2, 3]]),
        (np.float32(0.5), 0.5),
        ({"n": np.int64(7), "b": np.bool_(True)}, {"n": 7, "b": True}),
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (np.array(["a", "b"]), ["a", "b"]),
        ({"c": Colour.RED, "s": Size.BIG, Colour.RED: 1}, {"c": "red", "s": 3, "red": 1}),
        ("text", "text"),
        (2**64 - 1, 2**64 - 1),
    ],
)
def test_plain(returned: Any, expected: Any) -> None:
    assert plain(returned, "parameters") == expected
    encoded = propose(0, returned, ProposalRules("/weights")).parameters
    assert json.loads(encoded) == expected


class Layer:
    pass


def test_keys_of_nnis_tuners_are_written_as_its_json_writes_them() -> None:
    """Mutations: only at the top; a key is lost where two are the same text."""
    rules = ProposalRules("/weights", any_keys=True)
    returned = {0: [{np.int64(1): "a", None: 1}], 0.5: {True: 2}, "k": 3}
    encoded = propose(0, returned, rules).parameters
    assert json.loads(encoded) == json.loads(
        json.dumps({0: [{1: "a", None: 1}], 0.5: {True: 2}, "k": 3})
    )
    with pytest.raises(Nonsense, match="two keys that are '1'"):
        propose(0, {1: 2, "1": 3}, rules)
    with pytest.raises(Nonsense, match="JSON keys are text"):
        propose(0, {(1, 2): 3}, rules)


LOOP: dict[str, Any] = {}
LOOP["self"] = LOOP


@pytest.mark.parametrize(
    "returned, sentence",
    [
        ({"l": [0, {"w": float("nan")}]}, "parameters.l[1].w: NaN is not JSON"),
        ({"l": -np.inf}, "parameters.l: -Infinity is not JSON"),
        ({"x": np.array([1.0, np.nan])}, "parameters.x[1]: NaN is not JSON"),
        ({"s": {1}}, "parameters.s: a set is not JSON; return a sorted list"),
        ({"f": len}, "return its name and let the trial look it up"),
        ({"l": Layer()}, "parameters.l: a Layer is not JSON"),
        ({"b": b"x"}, "parameters.b: a bytes is not JSON; return text"),
        ({3: 1}, "parameters: has the key 3 (int); JSON keys are text, write '3'"),
        ({"a": {None: 1}}, "parameters.a: has the key None"),
        ({"n": 2**64}, "parameters.n: an integer of 65 bits is too large"),
        ({"t": "\ud800"}, "parameters.t:"),
        ({"d": np.datetime64("2020-01-01")}, "parameters.d: a date is not JSON"),
        (LOOP, "is nested deeper than 64 levels (does it hold itself?)"),
    ],
)
def test_not_plain(returned: Any, sentence: str) -> None:
    with pytest.raises(NotJson) as caught:
        plain(returned, "parameters")
    assert sentence in str(caught.value)


def test_paths_are_canonical(tmp_path: Path) -> None:
    read_root = tmp_path / "pretrained"
    rules = ProposalRules(str(tmp_path / "root"), read_roots=(str(read_root),))
    absolute = str(tmp_path / "root" / "a" / ".." / "b")
    proposal = propose(3, {"save_path": absolute, "restore_path": str(read_root / "x")}, rules)
    assert (proposal.save_path, proposal.restore_path) == ("b", str(read_root / "x"))
    assert propose(3, {"save_path": None}, rules).save_path is None
    with pytest.raises(Nonsense, match=r"parameters\.save_path: .*pretrained"):
        propose(3, {"save_path": str(read_root / "x")}, rules)


def test_a_read_root_that_is_a_link_keeps_its_name(tmp_path: Path) -> None:
    """Machines that have it elsewhere know it by the name in the file."""
    (tmp_path / "zoo").mkdir()
    declared = tmp_path / "pretrained"
    declared.symlink_to("zoo")
    rules = ProposalRules(str(tmp_path / "root"), read_roots=(str(declared),))
    for spelling in (declared / "x", tmp_path / "zoo" / "x"):
        assert propose(3, {"restore_path": str(spelling)}, rules).restore_path == f"{declared}/x"
    assert propose(3, {"restore_path": str(declared)}, rules).restore_path == str(declared)


def test_keys_are_configurable() -> None:
    rules = ProposalRules("/weights", save_key="out", restore_key="in")
    proposal = propose(3, {"out": "a", "in": "b", "save_path": 7}, rules)
    assert (proposal.save_path, proposal.restore_path) == ("a", "b")


def test_size_is_counted_in_bytes() -> None:
    rules = ProposalRules("/weights", max_bytes=6)
    propose(0, "éé", rules)
    with pytest.raises(Nonsense, match="8 bytes of JSON, and 6 are allowed"):
        propose(0, "ééé", rules)


def test_links_are_seen_on_the_quick_way_too(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "real" / "deep").mkdir(parents=True)
    (root / "alias").symlink_to("real")
    (root / "out").symlink_to(tmp_path)
    (root / "file").write_text("")
    rules = ProposalRules(str(root))

    def save(path: str) -> str | None:
        return propose(0, {"save_path": path}, rules).save_path

    assert save("real/deep/new") == "real/deep/new"
    assert save("alias/deep") == "real/deep"
    assert save("real//deep/./x") == "real/deep/x"
    assert save("real/../y") == "y"
    for path in ("out/x", "..", "", ".", "real/..", "a\0b"):
        with pytest.raises(Nonsense, match=r"parameters\.save_path:"):
            save(path)


@pytest.mark.parametrize("made", [False, True])
@pytest.mark.parametrize("name", [".checkpoints", ".bequeath"])
def test_folders_of_ours_are_refused_on_the_quick_way_too(
    tmp_path: Path, name: str, made: bool
) -> None:
    if made:
        (tmp_path / name).mkdir()
    with pytest.raises(Nonsense, match="choose another name"):
        propose(0, {"save_path": f"{name}/1"}, ProposalRules(str(tmp_path)))
    assert propose(0, {"save_path": ".1"}, ProposalRules(str(tmp_path))).save_path == ".1"


USUAL = Needs(gpus=1.0, cpus=4.0, custom=(("licence", 1.0),), priority=2)


def test_needs_are_taken_out_of_what_the_trial_sees() -> None:
    """What is not said is as usual. Mutation: the key stays in the parameters."""
    rules = ProposalRules("/weights", needs=USUAL)
    proposed = propose(1, with_needs({"x": 1}, gpus=8, resources={"tape": 2}), rules)
    assert json.loads(proposed.parameters) == {"x": 1}
    assert proposed.needs == Needs(8.0, cpus=4.0, custom=(("tape", 2.0),), priority=2)
    assert propose(1, {"x": 1}, rules).needs is None


def test_a_result_comes_with_what_the_trial_saw() -> None:
    """The very object where nothing was taken out. Mutation: the needs come back with a result,
    and the tuner is told that it changed its parameters."""
    rules = ProposalRules("/weights")
    plain_ones = {"x": 1}
    assert seen_by_trial(plain_ones, rules) is plain_ones
    assert seen_by_trial(with_needs(plain_ones, gpus=8), rules) == plain_ones
    assert seen_by_trial([1], rules) == [1]


def test_the_key_of_needs_has_the_name_that_the_file_gives_it() -> None:
    rules = ProposalRules("/weights", needs_key="wants")
    told = with_needs({"_needs": "mine"}, gpus=0.5, key="wants")
    proposed = propose(1, told, rules)
    assert (json.loads(proposed.parameters), proposed.needs) == (
        {"_needs": "mine"},
        Needs(gpus=0.5),
    )


@pytest.mark.parametrize(
    "needs, sentence",
    [
        (1, "parameters._needs: must be a mapping such as {'gpus': 1}, not 1"),
        (
            {"gpu": 1},
            "parameters._needs: has the unknown key 'gpu'; known are gpus, gpu_memory_bytes, cpus, "
            "memory_bytes, resources, priority",
        ),
        (
            {"gpus": 1.5},
            "parameters._needs: gpus must be a share of one GPU, up to 1, or a whole number of "
            "them, not 1.5",
        ),
        ({"gpus": True}, "parameters._needs: gpus must be a number, not True"),
        ({"cpus": -1}, "cpus must be between 0 and 1125899906842624, not -1"),
        ({"memory_bytes": "16gb"}, "memory_bytes must be a whole number of bytes, not '16gb'"),
        ({"gpu_memory_bytes": 0.5}, "gpu_memory_bytes must be a whole number of bytes, not 0.5"),
        ({"priority": 0.5}, "priority must be a whole number, not 0.5"),
        ({"resources": ["tape"]}, "resources must be names with their amounts"),
        ({"resources": {"tape": "x"}}, "resources has 'tape', which must be a number, not 'x'"),
    ],
)
def test_needs_that_no_trial_can_have_are_the_tuners_error(needs: Any, sentence: str) -> None:
    with pytest.raises(Nonsense) as refused:
        propose(1, {"x": 1, "_needs": needs}, ProposalRules("/weights"))
    assert sentence in str(refused.value)


def test_a_restore_path_may_name_a_version_of_a_shared_store(tmp_path: Path) -> None:
    rules = ProposalRules(str(tmp_path))
    given = {"restore_path": ".stores/omega/3", "shared_stores": {"omega": 2}}
    proposal = propose(4, given, rules)
    assert proposal.restore_path == ".stores/omega/3"
    assert proposal.reads == (("omega", 2), ("omega", 3))
    assert propose(4, {"restore_path": ".stores/omega/3"}, rules).reads == (("omega", 3),)
    with pytest.raises(Nonsense, match="names no version of a shared store"):
        propose(4, {"restore_path": ".stores/omega"}, rules)
    with pytest.raises(Nonsense, match="keep their versions"):
        propose(4, {"save_path": ".stores/omega/3"}, rules)
