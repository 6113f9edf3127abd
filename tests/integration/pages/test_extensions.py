"""Packages of others on pages: platforms, sinks, tuners, needs. Each block is used as it is."""

from __future__ import annotations

import inspect
import os
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import bequeath as bq
from dispatcher.conformance import allocations
from dispatcher.core.own_needs import read_needs
from dispatcher.core.resources import Needs
from tests.support.packages import lay_down
from tests.support.pages import ROOT, Reader, block_with, blocks, command_lines, python_blocks
from tests.unit.sinks import test_conformance as sinks

#: What the page of platforms leaves to its reader: names to import, and the way to a place.
LAKE = """\
import sys
from typing import Annotated, Any, Literal

from pydantic import Field

from bequeath_prefix.platform import PrefixVisit
from bequeath_prefix.section import PlaceSection
from dispatcher.platforms.protocol import (
    AgentPlatform, AttendedVisit, PlannedWorker, ServiceConfig, Text, distinct_names,
)


class LakeVisit(PrefixVisit):
    def __init__(self, given):
        AttendedVisit.__init__(self, given.worker)
        self._place = PlaceSection(name=given.worker, prefix=["nice"], python=sys.executable)
        self._home = given.home


"""


def entry_points(page: str) -> dict[str, dict[str, str]]:
    """The entry points that a page shows, by their groups."""
    (block,) = blocks(ROOT / page, "toml")
    shown: dict[str, dict[str, str]] = tomllib.loads(block.text)["project"]["entry-points"]
    return shown


def text_of(points: dict[str, dict[str, str]]) -> str:
    """The same as a distribution has them."""
    return "".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in each.items())
        for group, each in points.items()
    )


@pytest.fixture
def lake(reader: Reader) -> Reader:
    """A reader with the platform of the page, installed."""
    platform, _, _ = python_blocks("docs/backends.md")
    lay_down(
        reader.folder / "installed", "bequeath-lake", text_of(entry_points("docs/backends.md"))
    )
    reader.file("installed/bequeath_lake.py", LAKE + platform)
    return reader


def typed(reader: Reader, command: str, timeout_s: float = 240.0) -> str:
    """Type a command where the example's package and those of the reader are installed."""
    paths = [ROOT, ROOT / "examples/backend_prefix", reader.folder / "installed"]
    path = os.pathsep.join(map(str, paths))
    return reader.type(command, timeout_s, PYTHONPATH=path)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_platform_passes_the_suite_of_its_author(lake: Reader) -> None:
    """Mutation: the page's platform lacks what the head asks of it."""
    _, suite, _ = python_blocks("docs/backends.md")
    conftest, tests = suite.split("# test_conformance.py\n")
    lake.file("tests/conftest.py", conftest)
    lake.file("tests/test_conformance.py", f"import pytest\n{tests}")
    assert " passed" in typed(lake, "pytest -q -x -p no:cacheprovider tests", 800)


def test_the_suite_by_its_command(lake: Reader) -> None:
    lake.file("service.yml", "platform: lake\nboats: [kayak]\n")
    (command,) = command_lines(block_with("docs/backends.md", "--service service.yml"))
    assert "passed" in typed(lake, f"{command} -q -p no:cacheprovider -k twice")


def test_fixtures_for_allocations_are_those_that_its_tests_want(lake: Reader) -> None:
    _, _, fixtures = python_blocks("docs/backends.md")
    lake.file("tests/conftest.py", 'pytest_plugins = ["dispatcher.conformance.plugin"]\n')
    lake.file("tests/test_allocations.py", f"import pytest\n{fixtures}")
    listed = typed(lake, "pytest -q -p no:cacheprovider --collect-only tests")
    tests = [each for name, each in vars(allocations).items() if name.startswith("test_")]
    assert listed.count("::test_") == len(tests) > 2
    wanted = {name for test in tests for name in inspect.signature(test).parameters}
    names: dict[str, Any] = {"pytest": pytest}
    exec(fixtures, names)
    shown = {"scarce_service", "busy_queue", "take_away", "short_wall"}
    assert shown <= names.keys()
    source = inspect.getsource(allocations)
    assert [name for name in shown if name not in wanted and name not in source] == []


def test_a_sink_is_tried(tmp_path: Path, lines: Path) -> None:
    """With the whole sink that the page leads to."""
    assert entry_points("docs/sinks.md") == {"bequeath.sinks": {"lines": "lines_sink:LINES"}}
    (trial,) = python_blocks("docs/sinks.md")
    names: dict[str, Any] = {"read_back": lambda: sinks.read_lines(tmp_path / "there")}
    exec(f"from lines_sink import *\n{trial}", names)
    names["test_my_sink"](tmp_path)


@pytest.fixture
def lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of that sink, from which it is imported."""
    monkeypatch.syspath_prepend(str(sinks.FOREIGN))
    yield sinks.FOREIGN
    sys.modules.pop("lines_sink", None)


def test_tuners_and_assessors_by_name(reader: Reader) -> None:
    lay_down(reader.folder / "installed", "my-package", text_of(entry_points("docs/tuners.md")))
    package = reader.folder / "installed" / "my_package"
    reader.file("installed/my_package/__init__.py", "")
    reader.file(
        "installed/my_package/annealing.py",
        "import bequeath as bq\n\n\nclass AnnealingTuner(bq.Tuner):\n"
        "    def generate_parameters(self, parameter_id, **kwargs):\n        return {'x': 1}\n\n"
        "    def receive_trial_result(self, parameter_id, parameters, value, **kwargs): ...\n",
    )
    patience = next(block for block in blocks(ROOT / "docs/assessors.md", "python") if block.file)
    (package / "patience.py").write_text(patience.text)
    keys = {
        "searchSpace": {"x": "choice(1)"},
        "trialCommand": "true",
        "tuner": {"name": "Annealing"},
        "assessor": {"name": "Patience", "classArgs": {"steps": 4}},
        "trialConcurrency": 1,
        "maxTrialNumber": 1,
    }
    reader.file("experiment.yml", yaml.safe_dump(keys))
    typed(reader, "bequeath validate experiment.yml")
    assert "Annealing" in typed(reader, "bequeath tuner list")


def test_what_one_trial_needs() -> None:
    (block,) = python_blocks("docs/placement.md")
    names: dict[str, Any] = {}
    exec(block, names)
    parameters = names["generate_parameters"](None, 0)
    assert parameters.pop("_needs") == {"gpus": 8, "priority": 1}
    assert parameters == {"width": 4096}
    assert read_needs({"gpus": 8, "priority": 1}, Needs()).gpus == 8


def test_the_package_of_all_public_names() -> None:
    (block,) = python_blocks("docs/python-api.md")
    names: dict[str, Any] = {}
    exec(block, names)
    assert names["bq"] is bq
