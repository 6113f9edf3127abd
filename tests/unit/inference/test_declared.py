"""What a module offers is read from its text."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest

from dispatcher.errors import UserError
from dispatcher.experiment import ExperimentConfig, load_experiment
from dispatcher.inference.declared import completed, module_of, offer_of
from trial_runtime.inference import NoAnswer, plain, requested, with_bytes

DEMO = "def infer(model, request): ...\n"


HELLO = Path(__file__).parents[3] / "examples" / "hello" / "experiment.yml"


@functools.cache
def hello() -> ExperimentConfig:
    return load_experiment(HELLO)


def config(folder: Path, trialFunction: str = "", trialCommand: str = "") -> ExperimentConfig:  # noqa: N803 - keys of the file
    changed = {
        "trial_function": trialFunction or None,
        "trial_command": trialCommand or None,
        "trial_code_directory": folder,
    }
    return hello().model_copy(update=changed)


@pytest.mark.parametrize(
    "command,name,script",
    [
        ("python trial.py", "trial", "trial.py"),
        ("python3 -u sub/my-trial.py --lr 3", "my-trial", "sub/my-trial.py"),
        ("python3.11 -m package.trial --x 'a b'", "package.trial", ""),
    ],
)
def test_the_module_of_a_command(tmp_path: Path, command: str, name: str, script: str) -> None:
    module = module_of(config(tmp_path, trialCommand=command))
    assert module.name == name
    assert module.script == (str(tmp_path / script) if script else "")
    assert module.folder == str((tmp_path / script).parent if script else tmp_path)
    assert module.python.startswith("python")


@pytest.mark.parametrize("command", ["./run.sh", "cd x && python trial.py", "python", "bash 'x"])
def test_a_command_that_names_no_script(tmp_path: Path, command: str) -> None:
    with pytest.raises(UserError, match="not known which module") as refused:
        module_of(config(tmp_path, trialCommand=command))
    assert "trialFunction" in refused.value.hint


def test_the_module_of_a_function(tmp_path: Path) -> None:
    module = module_of(config(tmp_path, trialFunction="package.trial:train"))
    assert module.file == tmp_path / "package" / "trial.py"
    (tmp_path / "package" / "trial").mkdir(parents=True)
    (tmp_path / "package" / "trial" / "__init__.py").write_text("")
    assert module.file == tmp_path / "package" / "trial" / "__init__.py"


@pytest.mark.parametrize(
    "text",
    [DEMO, "from other import infer\n", "from other import *\n", "infer = print\n",
     "infer: object = print\n", "class infer: ...\n", "import other as infer\n"],
)  # fmt: skip
def test_a_function_may_come_from_elsewhere(tmp_path: Path, text: str) -> None:
    (tmp_path / "trial.py").write_text(text)
    assert offer_of(config(tmp_path, trialFunction="trial:train")).inputs is None


@pytest.mark.parametrize(
    "text,part",
    [
        ("def other(): ...\n", "has no function infer"),
        ("if True:\n    def infer(m, r): ...\n", "has no function infer"),
        (DEMO + "INFER_INPUTS = {'x': {'kind': 'number', 'default': 'a'}}", "be a number"),
        (DEMO + "INFER_INPUTS = {'x': {'kind': 'text', 'default': 3}}", "must be a text"),
        (
            DEMO + "INFER_INPUTS = {'x': {'kind': 'number', 'default': 3, 'maximum': 2}}",
            "2 or less",
        ),
        (DEMO + "INFER_INPUTS = {'x': {'kind': 'number', 'default': 1e999}}", "a finite number"),
        (DEMO + "INFER_INPUTS = {'x': {'kind': 'number', 'default': True}}", "cannot be read"),
        (DEMO + "INFER_INPUTS = {'x': {'kind': 'text', 'default': '\\ud800'}}", "cannot be read"),
        (DEMO + "INFER_INPUTS = {'x': {'kind': 'image', 'default': 'a'}}", "has no default"),
        (DEMO + "INFER_INPUTS = {'x': {'kind': 'drawing', 'width': 1000}}", "cannot be read"),
        (DEMO + "INFER_INPUTS = {'x': {'kind': 'text', 'labl': ''}}", "cannot be read"),
        (DEMO + "INFER_INPUTS = " + "(" * 5000, "is no Python"),
        (DEMO + "INFER_INPUTS = " + "-" * 50_000 + "1", "is no Python|cannot be read"),
        ("x = '\0'\n", "is no Python"),
    ],
)
def test_what_cannot_be_offered(tmp_path: Path, text: str, part: str) -> None:
    (tmp_path / "trial.py").write_text(text)
    with pytest.raises(UserError, match=part) as refused:
        offer_of(config(tmp_path, trialFunction="trial:train"))
    assert refused.value.where.startswith(str(tmp_path / "trial.py"))


@pytest.mark.parametrize(
    "kind,value,right",
    [
        ("number", 3, True), ("number", True, False), ("number", "3", False),
        ("text", "x", True), ("text", 3, False),
        ("image", {"base64": "AAE="}, True), ("image", {"base64": "?"}, False),
        ("image", {"base64": 3}, False), ("image", "AAE=", False),
        ("image", {"base64": "AAE=", "more": 1}, False),
        ("drawing", [[0, 1], [0.5, 0]], True), ("drawing", {"base64": "AAE="}, True),
        ("drawing", [[0, 1]], False), ("drawing", [[0, 1.5], [0, 0]], False),
        ("drawing", [[0, 1, 0], [0, 0]], False), ("drawing", [[0, "1"], [0, 0]], False),
    ],
)  # fmt: skip
def test_values_have_their_kinds(tmp_path: Path, kind: str, value: Any, right: bool) -> None:
    declared = f"INFER_INPUTS = {{'x': {{'kind': {kind!r}, 'width': 2, 'height': 2}}}}\n"
    (tmp_path / "trial.py").write_text(DEMO + declared)
    inputs = offer_of(config(tmp_path, trialFunction="trial:train")).inputs
    if right:
        completed(inputs, {"x": value})
    else:
        with pytest.raises(UserError, match="the field 'x' must be"):
            completed(inputs, {"x": value})


def test_a_default_is_taken_where_a_field_is_missing(tmp_path: Path) -> None:
    """Mutation: the default only fills the form of a page; a request without it is refused."""
    declared = (
        "INFER_INPUTS = {'n': {'kind': 'number', 'default': 3}, 'zero': {'kind': 'number', "
        "'default': 0}, 'empty': {'kind': 'text', 'default': ''}, 'x': {'kind': 'number'}}\n"
    )
    (tmp_path / "trial.py").write_text(DEMO + declared)
    inputs = offer_of(config(tmp_path, trialFunction="trial:train")).inputs
    request = {"x": 1, "zero": 5}
    full = completed(inputs, request)
    assert full == {"n": 3, "zero": 5, "empty": "", "x": 1}
    assert isinstance(full["n"], int)
    assert request == {"x": 1, "zero": 5}
    with pytest.raises(UserError, match="the field 'x' is missing"):
        completed(inputs, {})
    with pytest.raises(UserError, match="the field 'n' must be a number"):
        completed(inputs, {"x": 1, "n": None})
    with pytest.raises(UserError, match="the field 'n' must be a finite number"):
        completed(inputs, {"x": 1, "n": float("inf")})


def test_answers_become_plain_values() -> None:
    np = pytest.importorskip("numpy")
    assert plain({"a": np.float32(0.5), "b": np.arange(3), 3: None, "c": (True, "x")}) == {
        "a": 0.5, "b": [0, 1, 2], "3": None, "c": [True, "x"],
    }  # fmt: skip
    assert plain(10 ** (10**4)).endswith("digits")
    with pytest.raises(NoAnswer, match="a set"):
        plain({"a": {1}})


def test_requests_have_bytes_only_where_an_object_says_so() -> None:
    assert with_bytes([{"base64": "AAE="}, {"base64": "AAE=", "x": 1}, {"base64": 3}]) == [
        b"\0\1", {"base64": "AAE=", "x": 1}, {"base64": 3},
    ]  # fmt: skip
    assert requested({"d": [[0.0]]}, {"d": (1, 1)}) == {"d": [[0.0]]}
