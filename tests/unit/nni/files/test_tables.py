"""The tables are whole: what they name exists here, and nothing is dropped without a word."""

from __future__ import annotations

from pathlib import Path

import pytest

from dispatcher.cli.experiment_file import convert
from dispatcher.errors import UserError
from dispatcher.experiment import load_experiment
from dispatcher.experiment.builtin_names import canonical_builtin
from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiment.keys import keys_of
from dispatcher.experiment.loader import converted
from dispatcher.experiment.translated_keys import Does
from dispatcher.nni.files import algorithms
from dispatcher.nni.files.tables import SECTIONS, V1_TOP, V1_TRIAL, V2_TOP
from tests.unit.nni.files.conftest import OLD_SPACE, V1, V2, Files


@pytest.mark.parametrize("section", SECTIONS)
def test_each_key_has_an_answer(section: str) -> None:
    for key, row in SECTIONS[section].items():
        if row.does in (Does.REFUSE, Does.DROP, Does.FALSE_ONLY):
            assert row.note, f"{key}: why, or what to do instead"
        if row.does is Does.KEEP:
            assert row.native, key


@pytest.mark.parametrize("rows", [V1_TOP, V1_TRIAL, V2_TOP], ids=["v1", "trial", "v2"])
def test_what_is_kept_at_the_top_is_a_key_of_ours(rows: dict[str, object]) -> None:
    ours = set(keys_of(ExperimentConfig).values())
    for key, row in rows.items():
        native = row.native.partition(".")[0]  # type: ignore[attr-defined]
        assert not native or native in ours, key


@pytest.mark.parametrize("kind", ["tuner", "assessor"])
def test_each_algorithm_stands_for_one_that_is_there_or_says_what_to_use(kind: str) -> None:
    table = algorithms.TUNERS if kind == "tuner" else algorithms.ASSESSORS
    for each in table.values():
        if each.native:
            assert canonical_builtin(each.native, key=kind), each.nni
            defaults = {name: arg.default for name, arg in each.arguments.items() if not arg.native}
            defaults.pop("tpe_args", None)
            algorithms.native_arguments(each, defaults)  # NNI's defaults are never refused
        else:
            assert "use " in each.note


@pytest.mark.parametrize("text", [V1, V2], ids=["v1", "v2"])
def test_a_converted_file_is_the_same_experiment(files: Files, text: str) -> None:
    if text is V1:
        (files.folder / "space.json").write_text(OLD_SPACE)
    original = files.write(text)
    native = converted(original)
    assert native is not None
    again = files.write(native, "native.yml")
    here, there = load_experiment(original), load_experiment(again)
    changed = {"search_space_file"}  # one that old releases wrote is written out
    assert here.model_dump(exclude=changed) == there.model_dump(exclude=changed)
    assert converted(again) is None  # it is ours now
    # A reason stands above what NNI's habits add, and nothing of the file is missing.
    assert "# NNI never tries a failed trial again\ntrialRetries: 0\n" in native
    if text is V1:
        assert "# maxTrialNum\nmaxTrialNumber: 10\n" in native
        assert "# authorName: nobody asks for it" in native


def test_the_page_has_a_row_for_each_key(request: pytest.FixtureRequest) -> None:
    page = (Path(__file__).parents[4] / "docs" / "from-nni.md").read_text()
    for section, rows in SECTIONS.items():
        assert section in page
        for key in rows:
            assert f"`{key}`" in page, key


def test_the_command_writes_a_file_once(
    files: Files, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    original, target = files.write(V1), tmp_path / "native.yml"
    convert(original, output=target)
    convert(original)
    assert capsys.readouterr().out == target.read_text()
    with pytest.raises(UserError, match="exists already"):
        convert(original, output=target)
