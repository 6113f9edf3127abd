"""Keys of the section, and what is wrong with them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from dispatcher.errors import UserError
from dispatcher.experiment.loader import build_experiment, load_experiment
from dispatcher.platforms.slurm.options import arguments_of
from dispatcher.platforms.slurm.section import SlurmServiceConfig


def section(**keys: Any) -> SlurmServiceConfig:
    return SlurmServiceConfig.model_validate({"platform": "slurm", **keys})


def refusal(tmp_path: Path, **keys: Any) -> str:
    """What a file with these keys gets."""
    with pytest.raises(UserError) as raised:
        build_experiment(
            {
                "experimentWorkingDirectory": str(tmp_path),
                "searchSpace": {"x": {"_type": "choice", "_value": [1]}},
                "tuner": {"name": "Random"},
                "trialCommand": "true",
                "trialConcurrency": 1,
                "trainingService": {"platform": "slurm", **keys},
            }
        )
    return str(raised.value)


def first_trials_of_the_page() -> str:
    """The file of the first trial, as people copy it."""
    page = (Path(__file__).parents[4] / "docs/slurm.md").read_text()
    found = re.search(r"\$ cat hello.yml\n(.*?)\$ bequeath", page, re.S)
    assert found is not None
    return found[1]


def test_the_first_trials_of_the_page_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: the page has a key less than the file needs."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "bequeath").mkdir()
    file = tmp_path / "hello.yml"
    file.write_text(first_trials_of_the_page())
    config = load_experiment(file)
    assert config.weights_root == tmp_path / "bequeath/weights"
    file.write_text(file.read_text().replace("weightsRoot:", "# weightsRoot:"))
    with pytest.raises(UserError, match="name a 'weightsRoot' that nodes see"):
        load_experiment(file)


def test_one_word_or_several() -> None:
    assert section(partition="gpu").partition == ("gpu",)
    assert section(partition=["gpu", "spare"]).partition == ("gpu", "spare")
    assert section().partition == ()


def test_any_other_option_is_passed_through() -> None:
    """Mutation: a switch that is off."""
    options = section(
        options={"exclusive": True, "--licenses": "x:1", "nice": 10, "contiguous": False}
    ).options
    assert arguments_of(options) == ["--exclusive", "--licenses=x:1", "--nice=10"]


@pytest.mark.parametrize(
    "keys, words",
    [
        ({"options": {"job-name": "x"}}, "'experimentName'"),
        ({"options": {"partition": "x"}}, "write 'partition'"),
        ({"options": {"output": "x"}}, "bequeath writes it itself"),
        ({"options": {"requeue": True}}, "Slurm would start an agent a second time"),
        ({"options": {"array": "0-3"}}, "each allocation is a job of its own"),
        ({"options": {"p": "x"}}, None),
        ({"options": {"arra": "0-3"}}, "each allocation is a job of its own"),
        ({"options": {"requeu": True}}, "Slurm would start an agent a second time"),
        ({"options": {"job-nam": "x"}}, "'experimentName'"),
        ({"options": {"help": True}}, "nothing would be started"),
        ({"options": {"version": True}}, "nothing would be started"),
        ({"options": {"nodes": 4}}, "one job is one node"),
        ({"constraint": "a\0b"}, "'trainingService.constraint' must be one line"),
        ({"constraint": "a\nb"}, "'trainingService.constraint' must be one line"),
        ({"python": "a\0b"}, "'trainingService.python' must be one line"),
        ({"prolog": "a\0b"}, "'trainingService.prolog' holds a NUL character"),
        ({"memory": 64}, "'trainingService.memory' is less than 1 MiB"),
        ({"partition": 5}, "'trainingService.partition' must be a text or a list of them, not 5"),
        ({"environment": {"A B": "x"}}, "is no name that a shell gives a variable"),
        ({"sharedFolder": "/" + 5000 * "a"}, "'trainingService.sharedFolder' is no folder that"),
        ({"allocations": 10**9}, "must be at most"),
        ({"options": {"Exclusive": True}}, "write long names of sbatch"),
        ({"options": {"licenses": "a\nb"}}, "must be a text, a whole number or true"),
        ({"options": {"nice": 1.5}}, "must be a text, a whole number or true"),
        ({"options": ["exclusive"]}, "must be names with their values"),
        ({"partition": "gpu spare"}, "must be a name without blanks"),
        ({"wallTime": "0s"}, "wallTime"),
        ({"allocations": {"min": 2}}, "more than its 'max'"),
        ({"gress": "gpu:1"}, "gress"),
    ],
)
def test_bad_keys_get_a_sentence_each(
    keys: dict[str, Any], words: str | None, tmp_path: Path
) -> None:
    if words is None:  # Slurm's own short names are read as what they look like
        assert arguments_of(section(**keys).options) == ["--p=x"]
    else:
        assert words in refusal(tmp_path, **keys)


def test_workers_reach_the_head_at_the_address_of_the_file() -> None:
    workers = section(headAddress="head:7070", allocations=2).planned(4, ())
    assert [each.address for each in workers] == ["head:7070", "head:7070"]
    assert [each.name for each in workers] == ["slurm", "slurm-2"]


def test_what_nodes_do_not_see_is_said_before_anything_starts(tmp_path: Path) -> None:
    """Mutation: trials of an experiment find their parents' weights on one machine alone."""
    text = refusal(tmp_path, sharedFolder=str(tmp_path), codeSnapshot=True)
    assert "name a 'weightsRoot' that nodes see" in text
    assert "leave 'codeSnapshot' out" in text
    assert "is no folder that can be written to" in refusal(
        tmp_path, sharedFolder=str(tmp_path / "nowhere")
    )


def test_a_place_lasts_for_whole_minutes() -> None:
    assert section(wallTime="61s").wall_s == 120
    assert section().wall_s is None
