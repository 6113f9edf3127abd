"""Packages that were written for 0.1.0 bring platforms that work unchanged.

That version asked a platform for ``visit`` or ``backend``, ``files``, ``reach`` and ``reach_of``,
and for nothing else: whatever else an object of theirs has is its own affair, though we ask for
more by now and by the same names.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dispatcher.experiment import parse_experiment
from dispatcher.experiment.config import ExperimentConfig
from dispatcher.platforms.registry import platform_of
from dispatcher.wiring.needs import worker_rules

HERE = Path(__file__).parent
FILE = """\
tuner: {{name: Random}}
searchSpace: {{x: {{_type: choice, _value: [1]}}}}
trialCommand: "true"
trialConcurrency: 3
trainingService: {{platform: {word}, trialResources: {{licence: 1}}, storageDomain: lab}}
"""


class Parts:
    """What the head makes drivers of, here their names."""

    def visited(self, visit: Any) -> Any:
        return visit()

    def agent(self, process: Any) -> Any:
        return f"an agent by {process}"

    def service(self, make: Any) -> Any:
        return f"a thread for {make()}"


PARTS: Any = Parts()


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    there = tmp_path / "installed"
    info = there / "old-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: old\nVersion: 1.0\n")
    words = {"old": "OLD", "helped": "HELPED", "service": "Service"}
    points = "".join(f"{word} = bequeath_old:{name}\n" for word, name in words.items())
    (info / "entry_points.txt").write_text(f"[bequeath.backends]\n{points}")
    shutil.copy(HERE / "platform/bequeath_old.py", there)
    monkeypatch.syspath_prepend(str(there))
    yield
    sys.modules.pop("bequeath_old", None)


def read(word: str, base: Path) -> ExperimentConfig:
    return parse_experiment(FILE.format(word=word), "e.yml", base)


@pytest.mark.parametrize("word", ["old", "helped", "service"])
def test_a_file_that_was_read_then_is_read_now(installed: None, tmp_path: Path, word: str) -> None:
    """With resources that no file names: visits add them. Mutations: an agent's platform has, as a
    rule, what the file names; helpers of theirs are asked for keys, hosts and domains."""
    config = read(word, tmp_path)
    (_, worker), *_ = config.workers
    assert worker_rules(config)[worker.name].domain == "lab"


@pytest.mark.parametrize(
    "word, driver, reach, files",
    [
        ("old", "an agent by a visit of w", "socket", "files of 1.2"),
        ("helped", "an agent by a visit of w", "socket", "files of 1.2"),
        ("service", "a thread for a backend of w", "socket", None),
    ],
)
def test_the_head_gets_from_it_what_it_got(
    installed: None, tmp_path: Path, word: str, driver: str, reach: str, files: str | None
) -> None:
    """And of what 0.1.0 did not ask for, what our base classes answer. Mutation: any version of
    the protocol is asked for all that there is now."""
    (service,) = read(word, tmp_path).services
    platform = platform_of(service)
    given: Any = SimpleNamespace(worker="w")
    made: object = platform.driver(given, PARTS)
    assert made == driver
    assert platform.reach_of(service) == reach
    shown = platform.worker_files(given).of(1, 2)
    assert (shown.place if shown else None) == files
    assert platform.host("w", service) is None
    assert platform.has_agent is (word != "service")
    assert (platform.this_machine, platform.sends_code, platform.own_resources) == (
        False,
        False,
        True,
    )
