"""Platforms of other packages: installed beside the test, by a folder as ``pip`` makes it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dispatcher.errors import UserError
from dispatcher.experiment import ExperimentFileErrors, parse_experiment, plugged
from dispatcher.experiment.plugged import installed
from dispatcher.experiment.snapshot import from_json, to_json

FILE = """\
tuner: {name: Random}
searchSpace: {x: {_type: choice, _value: [1]}}
trialCommand: "true"
trialConcurrency: 3
"""
LAKE = """\
from typing import Annotated, Literal
from dispatcher.platforms.protocol import (
    AgentPlatform, BackendPlatform, Count, KeyProblem, PlannedWorker, ServiceConfig, Size, Text,
    distinct_names)

class Section(ServiceConfig):
    platform: Literal["lake"]
    depth: Count
    boats: tuple[Text, ...] = ("kayak",)
    hold: Size = 1024

    def planned(self, usual, taken):
        if self.depth == 13:
            raise RuntimeError("no luck")
        if self.depth == 14:
            return tuple(PlannedWorker("../" + each, 1, self) for each in self.boats)
        names = self.boats if self.depth == 15 else distinct_names(self.boats, taken)
        return tuple(PlannedWorker(each, self.slots or usual, self) for each in names)

class Lake(AgentPlatform):
    protocol = 1
    section = Section

    def check(self, section, at, experiment):
        if section.depth == 21:
            yield KeyProblem((*at, "depth"), "is deeper than the lake")
        if section.depth == 22:
            yield KeyProblem(("tuner",), "is not where it should be")
        if section.depth == 23:
            raise RuntimeError("no luck")

    def visit(self, given):
        raise NotImplementedError

class SeaSection(ServiceConfig):
    platform: Literal["sea"]

class Sea(BackendPlatform):
    protocol = 1
    section = SeaSection

    def backend(self, given):
        raise NotImplementedError

class Older(Lake):
    protocol = 0

class Bare:
    protocol = 1

LAKE = Lake()
"""

Read = Callable[[str], object]


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package that brings platforms, good ones and bad ones."""
    there = tmp_path / "installed"
    info = there / "lake-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lake-backends\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[bequeath.backends]\nlake = lake_of_tests:LAKE\nolder = lake_of_tests:Older\n"
        "bare = lake_of_tests:Bare\nbroken = lake_of_tests.gone:X\nssh = lake_of_tests:LAKE\n"
        "sea = lake_of_tests:Sea\n"
    )
    (there / "lake_of_tests.py").write_text(LAKE)
    monkeypatch.syspath_prepend(str(there))
    yield
    sys.modules.pop("lake_of_tests", None)


@pytest.fixture
def errors_of(tmp_path: Path) -> Callable[[str], list[str]]:
    def errors(service: str) -> list[str]:
        with pytest.raises(ExperimentFileErrors) as refused:
            parse_experiment(f"{FILE}trainingService:\n  {service}\n", "e.yml", tmp_path)
        return [str(each) for each in refused.value.errors]

    return errors


def test_a_section_of_another_package_is_read_and_recorded(lake: None, tmp_path: Path) -> None:
    """In any spelling of its keys, and beside ours."""
    text = f"{FILE}trainingService:\n- platform: local\n- {{platform: lake, Depth: 2, hold: 2kb}}\n"
    config = parse_experiment(text, "e.yml", tmp_path)
    section = config.services[1]
    assert (type(section).__name__, section.depth, section.hold) == (  # type: ignore[attr-defined]
        "Section",
        2,
        2048,
    )
    assert [(w.name, w.slots) for _, w in config.workers] == [("local", 3), ("kayak", 3)]
    assert config.slots == 3
    assert from_json(to_json(config)) == config


def test_what_is_wrong_in_it_is_named_with_its_place(
    lake: None, errors_of: Callable[[str], list[str]]
) -> None:
    assert errors_of("{platform: lake, depth: 0}") == [
        "e.yml:6:27: 'trainingService.depth' must be at least 1, not 0"
    ]
    assert errors_of("{platform: lake}") == ["e.yml:6:3: 'trainingService' needs the key 'depth'"]
    (unknown,) = errors_of("{platform: lake, depth: 1, dpth: 2}")
    assert unknown.startswith("e.yml:6:30: unknown key 'dpth' in 'trainingService'; did you mean")


@pytest.mark.parametrize(
    "service, said",
    [
        (
            "{platform: moon}",
            "e.yml:6:14: the platform 'moon' is not installed\n"
            "  installed are local, ssh, bare, broken, lake, older, sea; others come with packages "
            "that bring them",
        ),
        (
            "{platform: older}",
            "e.yml:6:14: the platform 'older' was written for version 0 of the protocol of "
            "backends, and this bequeath has version 1\n  install versions of 'lake-backends' and "
            "bequeath that fit together",
        ),
        (
            "{platform: bare}",
            "e.yml:6:14: the platform 'bare' has no section: its 'section' must be a "
            "ServiceConfig\n  report it to the authors of 'lake-backends'",
        ),
        (
            "{platform: broken}",
            "e.yml:6:14: the platform 'broken' cannot be loaded: ModuleNotFoundError: No module "
            "named 'lake_of_tests.gone'; 'lake_of_tests' is not a package\n"
            "  it is brought by 'lake-backends'",
        ),
        (
            "{platform: lake, depth: 13}",
            "e.yml:6:3: 'trainingService' cannot list its workers: RuntimeError: no luck",
        ),
        (
            "{platform: lake, depth: 14}",
            "e.yml:6:3: 'trainingService' has a worker called '../kayak', which is no name for one",
        ),
        (
            "{platform: lake, depth: 15, boats: [a, a]}",
            "e.yml:6:3: 'trainingService' has two workers called 'a'",
        ),
    ],
)
def test_a_platform_that_is_no_good_is_refused_by_name(
    lake: None, errors_of: Callable[[str], list[str]], service: str, said: str
) -> None:
    assert errors_of(service) == [said]


def test_nobody_takes_our_words(lake: None) -> None:
    """Nor by an entry point of the same name."""
    assert installed()["ssh"].value == "dispatcher.platforms.ssh:SSH"


def test_words_of_ours_are_refused_to_others_aloud(
    lake: None, caplog: pytest.LogCaptureFixture
) -> None:
    installed()
    assert "brings a platform 'ssh', which is a name of ours" in caplog.text


def test_an_installation_older_than_the_code_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkout whose entry points were written before ours were among them. Mutation: the file
    is blamed, whose platform is not installed."""
    monkeypatch.setattr(plugged, "entries_of", lambda group: ())
    monkeypatch.syspath_prepend("/another/path")  # what was read for this one is not kept
    with pytest.raises(UserError, match="does not name its own platforms") as refused:
        plugged.platform_named("local")
    assert "install bequeath again" in refused.value.hint


def test_a_check_of_another_package_harms_its_own_file_only(
    lake: None, errors_of: Callable[[str], list[str]]
) -> None:
    """And it finds what is wrong at the keys of its own section alone."""
    assert errors_of("{platform: lake, depth: 21}") == [
        "e.yml:6:27: 'trainingService.depth' is deeper than the lake"
    ]
    assert errors_of("{platform: lake, depth: 22}") == [
        "e.yml:6:3: 'trainingService' is not where it should be"
    ]
    assert errors_of("{platform: lake, depth: 23}") == [
        "e.yml:6:3: 'trainingService' cannot be checked: RuntimeError: no luck"
    ]


def test_names_of_resources_are_checked_where_only_the_file_has_any(
    lake: None, tmp_path: Path, errors_of: Callable[[str], list[str]]
) -> None:
    """An agent offers what the file names; a service of somebody else may have what it wants."""
    (refused,) = errors_of("{platform: lake, depth: 1, trialResources: {boats: 1}}")
    assert "asks for 1 of 'boats', and the most that a machine has is 0" in refused
    service = "{platform: sea, trialResources: {boats: 1}}"
    parse_experiment(f"{FILE}trainingService:\n  {service}\n", "e.yml", tmp_path)
