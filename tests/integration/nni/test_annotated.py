"""Annotated code runs unmodified, by both commands, with real processes."""

from __future__ import annotations

import json
import shutil
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import end_processes_of, wait_until
from tests.unit.cli.conftest import Shell

EXAMPLE = Path(__file__).parents[3] / "examples" / "nni_classic"


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    ignored = shutil.ignore_patterns("weights", "__pycache__")
    copy = Path(shutil.copytree(EXAMPLE, tmp_path / "example", ignore=ignored))
    file = copy / "config_annotated.yml"
    text = file.read_text().replace("maxTrialNum: 8", "maxTrialNum: 4")
    file.write_text(f"{text}experimentWorkingDirectory: {tmp_path / 'kept'}\n")
    return copy


def trials_of(folder: Path) -> list[dict[str, Any]]:
    return list(Shell()("trial", "ls", folder, "--json").json()["trials"])


def check(folder: Path) -> None:
    """Each result is what the code makes of the parameters that were chosen."""
    rows = trials_of(folder)
    assert len(rows) == 4
    for row in rows:
        told = row["parameters"]
        assert set(told) == {
            "train/steps/choice",
            "train/height/uniform",
            "train/climb/function_choice",
        }
        height = told["train/height/uniform"]
        for _ in range(told["train/steps/choice"]):
            half = told["train/climb/function_choice"] == "climb(height)"
            height = height / 2 if half else height**0.5
        assert row["result"] == pytest.approx(height)


def test_an_annotated_example_runs_by_bequeath_run(example: Path, tmp_path: Path) -> None:
    before = (example / "annotated" / "train.py").read_text()
    Shell()("run", example / "config_annotated.yml")
    (folder,) = (tmp_path / "kept").iterdir()
    check(folder)
    assert (example / "annotated" / "train.py").read_text() == before
    assert "nni.choice({1: 1, 2: 2, 4: 4}" in (folder / "code" / "train.py").read_text()


def test_and_by_nnis_own_word(example: Path, tmp_path: Path) -> None:
    Shell()("nni", "create", "-c", example / "config_annotated.yml")
    (folder,) = (tmp_path / "kept").iterdir()
    try:
        wait_until(
            lambda: Shell()("status", folder, "--json").json()["experiment"]["status"] != "running",
            "it is over",
        )
        check(folder)
    finally:
        end_processes_of(folder)


LAYERS = '''
    """@nni.get_next_parameter()"""

    def doubled(inputs):
        return 2 * inputs[1][0]

    def tripled(inputs):
        return 3 * inputs[1][0]

    one = 1
    """@nni.mutable_layers(
        {layer_choice: [doubled(), tripled()], optional_inputs: [one], optional_input_size: 1,
         layer_output: first},
        {layer_choice: [doubled(), tripled()], optional_inputs: [one, first],
         optional_input_size: 1, layer_output: second}
    )"""
    """@nni.training_update(tf=None)"""
    """@nni.report_final_result(second)"""
'''

CHOOSES = """
    from nni.tuner import Tuner

    class Chooses(Tuner):
        '''The space as NNI's own tuners of architectures get it, and the answer as they give it.'''

        def update_search_space(self, space):
            (self.block,) = space
            assert space[self.block]["_type"] == "mutable_layer", space

        def generate_parameters(self, parameter_id, **kwargs):
            first = {"chosen_layer": "tripled()", "chosen_inputs": ["one"]}
            second = {"chosen_layer": "doubled()", "chosen_inputs": ["first"]}
            return {self.block: {"mutable_layer_0": first, "mutable_layer_1": second}}

        def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
            assert value == 6, value
"""


@pytest.mark.parametrize("own", [False, True])
def test_annotated_layers_for_ours_and_for_tuners_of_nnis(
    example: Path, tmp_path: Path, own: bool
) -> None:
    (example / "annotated" / "train.py").write_text(textwrap.dedent(LAYERS))
    file = example / "config_annotated.yml"
    text = file.read_text().replace("  gpuNum: 0", "  gpuNum: 0\n  nasMode: classic_mode")
    if own:
        (example / "chooses.py").write_text(textwrap.dedent(CHOOSES))
        section = "  codeDir: .\n  classFileName: chooses.py\n  className: Chooses\n"
        begin, end = text.index("  builtinTunerName"), text.index("trial:")
        text = text[:begin] + section + text[end:]
    file.write_text(text)
    Shell()("run", file)
    (folder,) = (tmp_path / "kept").iterdir()
    rows = trials_of(folder)
    assert len(rows) == 4
    assert {row["result"] for row in rows} <= ({6} if own else {2, 3, 4, 6, 9})
    for row in rows if not own else ():
        told = {key.rpartition("mutable_layer_")[2]: x for key, x in row["parameters"].items()}
        by = {"doubled()": 2, "tripled()": 3}
        expected = by[told["1/layer_choice"]]
        if told["1/optional_inputs"] == ["first"]:
            expected *= by[told["0/layer_choice"]]
        assert row["result"] == expected, json.dumps(told)
