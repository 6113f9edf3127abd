"""Platforms of other packages: installed beside the test, by a folder as ``pip`` makes it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dispatcher.errors import PassingBackendError, PermanentBackendError, UserError
from dispatcher.experiment import ExperimentFileErrors, parse_experiment, plugged
from dispatcher.experiment.plugged import installed, our_words, platform_named
from dispatcher.experiment.snapshot import from_json, to_json
from tests.support.packages import lay_down

from .conftest import OURS

FILE = """\
tuner: {name: Random}
searchSpace: {x: {_type: choice, _value: [1]}}
trialCommand: "true"
trialConcurrency: 3
"""
LAKE = """\
from typing import Annotated, Literal
from dispatcher.platforms.protocol import (
    AgentPlatform, BackendPlatform, Count, KeyProblem, PassingBackendError, PlannedWorker,
    ServiceConfig, Size, Text, distinct_names)
from pydantic import field_validator

class Section(ServiceConfig):
    platform: Literal["lake", "pond"]
    depth: Count
    boats: tuple[Text, ...] = ("kayak",)
    hold: Size = 1024

    @field_validator("depth")
    @classmethod
    def _sound(cls, depth):
        if depth == 41:
            raise RuntimeError("no luck")
        return depth

    def planned(self, usual, taken):
        if self.depth == 13:
            raise RuntimeError("no luck")
        if self.depth == 14:
            return tuple(PlannedWorker("../" + each, 1, self) for each in self.boats)
        names = self.boats if self.depth == 15 else distinct_names(self.boats, taken)
        return tuple(PlannedWorker(each, self.slots or usual, self) for each in names)

class Shore:
    def __init__(self, name):
        self.name = name

    def check(self, needs):
        raise ValueError("leak")

    def leftovers(self):
        raise PassingBackendError("nobody answers")

class Lake(AgentPlatform):
    protocol = 2
    section = Section

    def check(self, section, at, experiment):
        if section.depth == 21:
            yield KeyProblem((*at, "depth"), "is deeper than the lake")
        if section.depth == 22:
            yield KeyProblem(("tuner",), "is not where it should be")
        if section.depth == 23:
            raise RuntimeError("no luck")

    def storage_domain(self, section, part):
        if section.depth == 31:
            raise RuntimeError("no luck")
        return None if section.depth == 32 else super().storage_domain(section, part)

    def reach_of(self, part):
        if part.depth == 33:
            raise RuntimeError("no luck")
        return "boat" if part.depth == 34 else "tcp"

    def host(self, worker, part):
        return Shore(worker)

    def driver(self, given, drivers):
        raise RuntimeError("no luck")

    def visit(self, given):
        raise NotImplementedError

class SeaSection(ServiceConfig):
    platform: Literal["sea"]

    @classmethod
    def read_short_form(cls, value):
        if value.get("slots") == 41:
            raise RuntimeError("no weeding")
        return value

class Sea(BackendPlatform):
    protocol = 2
    section = SeaSection

    def backend(self, given):
        raise NotImplementedError

class Pond(Lake):
    own_resources = False

class Older(Lake):
    protocol = 0

class Bare:
    protocol = 2

LAKE = Lake()
"""

Read = Callable[[str], object]


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package that brings platforms, good ones and bad ones."""
    there = tmp_path / "installed"
    lay_down(
        there,
        "lake-backends",
        "[bequeath.backends]\nlake = lake_of_tests:LAKE\nolder = lake_of_tests:Older\n"
        "bare = lake_of_tests:Bare\nbroken = lake_of_tests.gone:X\npond = lake_of_tests:Pond\n"
        "sea = lake_of_tests:Sea\n",
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
            f"  installed are {OURS}, bare, broken, lake, older, pond, sea; others come with "
            "packages that bring them",
        ),
        (
            "{platform: older}",
            "e.yml:6:14: the platform 'older' was written for version 0 of the protocol of "
            "backends, and this bequeath has version 2\n  install versions of 'lake-backends' and "
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


@pytest.mark.parametrize(
    "point",
    [
        "ssh = lake_of_tests:LAKE",
        "SSH = lake_of_tests:LAKE",
        "ssh = dispatcher.platforms.local:LOCAL",
        "local = dispatcher.platforms.nowhere:X",
        "remote = dispatcher.platforms.local:LOCAL",
    ],
)
def test_nobody_takes_our_words(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    point: str,
) -> None:
    """Nor by a module of ours: files mean what they meant, and the package is named. Mutation: an
    entry point is ours by the text of its value."""
    lay_down(tmp_path / "installed", "a-thief", f"[bequeath.backends]\n{point}\n")
    monkeypatch.syspath_prepend(str(tmp_path / "installed"))
    word = point.partition(" ")[0]
    assert installed()["ssh"].entry.value == "dispatcher.platforms.ssh:SSH"
    assert type(platform_named("local")).__name__ == "LocalPlatform"
    assert type(platform_named("remote")).__name__ == "SshPlatform"
    parse_experiment(FILE, "e.yml", tmp_path)
    assert f"'a-thief' brings a platform '{word}', which is a name of ours" in caplog.text
    assert our_words() == [*OURS.split(", "), "remote"]


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
    """And it finds what is wrong at the keys of its own section alone. Mutation: a generator of
    theirs, which fails only when it is asked for its next answer, is not said to be theirs."""
    assert errors_of("{platform: lake, depth: 21}") == [
        "e.yml:6:27: 'trainingService.depth' is deeper than the lake"
    ]
    assert errors_of("{platform: lake, depth: 22}") == [
        "e.yml:6:3: 'trainingService' is not where it should be"
    ]
    (error,) = errors_of("{platform: lake, depth: 23}")
    assert error.startswith(
        "e.yml:6:3: 'trainingService' cannot be checked: the platform 'lake' fails at 'check': "
        "RuntimeError: no luck"
    )
    assert "report it to the authors of 'lake-backends'" in error


def test_names_of_resources_are_checked_where_only_the_file_has_any(
    lake: None, tmp_path: Path, errors_of: Callable[[str], list[str]]
) -> None:
    """Places of somebody else may have what no file says: a visit may add it to what an agent
    offers. Mutation: an agent's platform has, as a rule, what the file names."""
    (refused,) = errors_of("{platform: local, trialResources: {boats: 1}}")
    assert "asks for 1 of 'boats', and the most that a machine has is 0" in refused
    (refused,) = errors_of("{platform: pond, depth: 1, trialResources: {boats: 1}}")
    assert "asks for 1 of 'boats', and the most that a machine has is 0" in refused
    for service in ("{platform: sea, ", "{platform: lake, depth: 1, "):
        service += "trialResources: {boats: 1}}"
        parse_experiment(f"{FILE}trainingService:\n  {service}\n", "e.yml", tmp_path)


@pytest.mark.parametrize(
    "depth, said",
    [
        (31, "fails at 'storage_domain': RuntimeError: no luck"),
        (32, "has a storage domain that is no text: None"),
        (33, "fails at 'reach_of': RuntimeError: no luck"),
        (34, "has workers that reach the head by 'boat', which is not: socket, tunnel, tcp"),
    ],
)
def test_what_the_head_will_ask_is_asked_before_there_is_an_experiment(
    lake: None, errors_of: Callable[[str], list[str]], depth: int, said: str
) -> None:
    """Mutation: the head is the first to ask, when the experiment's folder is there."""
    (error,) = errors_of(f"{{platform: lake, depth: {depth}}}")
    assert error.startswith("e.yml:6:3: 'trainingService' ")
    assert said in error
    if "fails" in said:
        assert "report it to the authors of 'lake-backends'" in error


def test_what_another_package_raises_is_named_as_its_own(lake: None) -> None:
    """Wherever it is asked; and so is what the objects raise that it answers with. Mutation: it is
    taken for a fault of ours."""
    platform: Any = platform_named("lake")
    with pytest.raises(PermanentBackendError) as raised:
        platform.driver(None, None)
    assert raised.value.message == "the platform 'lake' fails at 'driver': RuntimeError: no luck"
    assert raised.value.hint == "report it to the authors of 'lake-backends'"
    assert raised.value.where == "trainingService"
    host = platform.host("kayak", None)
    assert host.name == "kayak"
    with pytest.raises(PermanentBackendError, match="'lake' fails at 'check': ValueError: leak"):
        host.check(None)
    with pytest.raises(PassingBackendError, match="nobody answers"):
        host.leftovers()


def test_a_section_that_fails_in_a_way_of_its_own_is_refused_in_its_place(
    lake: None, errors_of: Callable[[str], list[str]]
) -> None:
    """Validators may raise ``ValueError``; what else they raise is no fault of ours, either."""
    (error,) = errors_of("{platform: lake, depth: 41}")
    assert error == "e.yml:6:3: 'trainingService' cannot be read: RuntimeError: no luck"
    (error,) = errors_of("{platform: sea, slots: 41}")
    assert error == "e.yml:6:3: 'trainingService' cannot be read: RuntimeError: no weeding"
