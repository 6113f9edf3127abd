"""The tables are whole: each field of a contract has an answer, which the page has as well."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from dispatcher.experiment.builtin_names import canonical_builtin
from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiment.keys import keys_of
from dispatcher.experiment.translated_keys import Does, Row
from dispatcher.foreign_files.google.table import AI_PLATFORM, VERTEX_AI
from dispatcher.foreign_files.katib.algorithms import ALGORITHMS
from dispatcher.foreign_files.katib.table import KATIB
from dispatcher.foreign_files.page import TABLES
from tests.unit.foreign_files.conftest import AI_PLATFORM as TRAINING
from tests.unit.foreign_files.conftest import VERTEX_AI as TUNING
from tests.unit.foreign_files.conftest import Files
from tuners.catalogue import describe

ROOT = Path(__file__).parents[3]
CONTRACTS = ROOT / "tests" / "contracts"

SCHEMAS: dict[str, Any] = json.loads(
    (CONTRACTS / "google-tuning" / "tuning-jobs.json").read_text()
)["schemas"]

#: A parameter below another one is like the one above it.
_AGAIN = "conditionalParameterSpecs[].parameterSpec"


def fields_of(schema: str, path: str = "") -> Iterator[str]:
    """Paths of all fields of a schema that are followed, lists as ``name[]``."""
    for name, value in SCHEMAS.get(schema, {"properties": {}})["properties"].items():
        here = f"{path}.{name}" if path else name
        inner = value.get("$ref") or value.get("items", {}).get("$ref")
        many = "[]" if "items" in value else ""
        below = [] if here.endswith(_AGAIN) else list(fields_of(inner or "", f"{here}{many}"))
        yield here
        yield from below


@pytest.mark.parametrize(
    "schema, table",
    [
        ("GoogleCloudMlV1__Job", AI_PLATFORM),
        ("GoogleCloudAiplatformV1HyperparameterTuningJob", VERTEX_AI),
    ],
)
def test_each_field_of_googles_contract_has_an_answer(
    schema: str, table: Mapping[str, Row]
) -> None:
    """Mutation: a row less. Fields of sections that a special row reads by itself are followed as
    far as the table goes."""
    fields = list(fields_of(schema))
    assert len(fields) > 60
    assert [each for each in fields if not _has_a_row(each, table)] == []


def _has_a_row(path: str, table: Mapping[str, Row]) -> bool:
    """The row of the field itself, of any other field beside it, or of a section above it that is
    left out as a whole."""
    parts = path.split(".")
    for end in range(len(parts), 0, -1):
        start = ".".join(parts[:end]).removesuffix("[]")
        above = ".".join(parts[: end - 1])
        row = table.get(start) or table.get(f"{above}.*")
        if row is not None:
            whole = row.does not in (Does.SECTION, Does.SPECIAL)
            return end == len(parts) or whole or start in _READ_AS_A_WHOLE
    return False


#: Fields whose own fields are read where they are, and named in no table: values by name, and what
#: is beside the values of a parent.
_READ_AS_A_WHOLE = {
    *(
        f"studySpec.parameters[].conditionalParameterSpecs[].{each}"
        for each in ("parentCategoricalValues", "parentDiscreteValues", "parentIntValues")
    ),
    "studySpec.medianAutomatedStoppingSpec",
    "studySpec.decayCurveStoppingSpec",
    "studySpec.convexAutomatedStoppingSpec",
    "trialJobSpec.workerPoolSpecs[].containerSpec.env",
    "trialJobSpec.workerPoolSpecs[].pythonPackageSpec.env",
}


def test_each_field_of_katibs_contract_has_an_answer() -> None:
    fields = (CONTRACTS / "katib" / "fields.txt").read_text().split()
    assert len(fields) > 40
    assert [each for each in fields if each not in KATIB] == []


@pytest.mark.parametrize(
    "schema, fields",
    [
        ("GoogleCloudMlV1__HyperparameterSpec", "goal algorithm"),
        ("GoogleCloudMlV1__ParameterSpec", "type scaleType"),
        ("GoogleCloudMlV1__TrainingInput", "scaleTier"),
    ],
)
def test_each_word_of_the_contract_is_known(files: Files, schema: str, fields: str) -> None:
    """Mutation: a goal, a scale or a tier that the file may have and nobody here knows."""
    (files.folder / "trainer").mkdir()
    (files.folder / "trainer" / "task.py").write_text("")
    now = {"goal": "MINIMIZE", "algorithm": "RANDOM_SEARCH", "type": "DOUBLE",
           "scaleType": "UNIT_LOG_SCALE", "scaleTier": "BASIC"}  # fmt: skip
    for field in fields.split():
        for word in SCHEMAS[schema]["properties"][field]["enum"]:
            if word in ("PARAMETER_TYPE_UNSPECIFIED", "BASIC_TPU"):
                continue  # refused, which other tests see
            text = TRAINING.replace(f"{field}: {now[field]}", f"{field}: {word}", 1)
            if word in ("CATEGORICAL", "DISCRETE"):
                kind = "categoricalValues: [a]" if word == "CATEGORICAL" else "discreteValues: [1]"
                text = text.replace("minValue: 0.0001, maxValue: 0.1", kind, 1)
            text = text.replace("minValue: 0.0001, maxValue: 0.1", "minValue: 1, maxValue: 2", 1)
            files.load(text)


def test_each_selection_of_a_measurement_is_known(files: Files) -> None:
    study = SCHEMAS["GoogleCloudAiplatformV1StudySpec"]["properties"]
    for field in ("algorithm", "measurementSelectionType"):
        for word in study[field]["enum"]:
            text = TUNING.replace("  algorithm: RANDOM_SEARCH", f"  {field}: {word}")
            files.load(text)


@pytest.mark.parametrize("title", TABLES)
def test_each_row_says_what_becomes_of_its_field(title: str) -> None:
    ours = set(keys_of(ExperimentConfig).values())
    for path, row in TABLES[title].items():
        if row.does in (Does.REFUSE, Does.DROP, Does.NOTHING):
            assert row.note, f"{path}: why, or what to do instead"
        if row.does is Does.KEEP:
            assert row.native, path
        for native in row.native.split(", ") if row.native else ():
            assert native.partition(".")[0] in ours, path


def test_the_page_has_each_field() -> None:
    page = (ROOT / "docs" / "from-others.md").read_text()
    for title, table in TABLES.items():
        assert f"## {title}" in page
        for path, row in table.items():
            if row.does is not Does.SECTION:
                assert f"`{path.removesuffix('.*')}`" in page, path


def test_each_algorithm_stands_for_one_that_takes_its_settings() -> None:
    """Mutation: a setting of Katib's under a name that our tuner does not have."""
    for name, each in ALGORITHMS.items():
        if not each.native:
            assert each.note, name
            continue
        native = canonical_builtin(each.native)
        assert native is not None, name
        taken = {argument.name for argument in describe(native).arguments}
        wanted = {setting.native for setting in each.settings.values() if setting.native}
        assert wanted | set(each.fixed) <= taken, name
        for key, setting in each.settings.items():
            assert setting.native or setting.note, f"{name}: {key}"
