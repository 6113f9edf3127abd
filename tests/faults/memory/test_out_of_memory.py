"""Memory runs out for real: recognised as such, and the trial is tried again."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dispatcher.core import events as e
from dispatcher.core.model import EndReason
from tests.faults.experiments import Experiment
from tests.support.processes import wait_until

CODE = Path(__file__).parent / "code"
LIMIT_BYTES = 192 << 20

Make = Callable[..., Experiment]

_GROUPS = {
    "memory.limit_in_bytes": Path("/sys/fs/cgroup/memory"),
    "memory.max": Path("/sys/fs/cgroup"),
}


@pytest.fixture
def little_memory(tmp_path: Path) -> Iterator[Path]:
    """A control group of the kernel's, of either version, with a limit."""
    for limit, above in _GROUPS.items():
        group = above / f"bequeath-test-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            if not (group / limit).exists():
                continue
            (group / limit).write_text(str(LIMIT_BYTES))
            yield group
            return
        finally:
            wait_until(lambda group=group: _removed(group), "its processes have ended")
    pytest.skip("no control group can be made here; run as root with the memory controller")


def _removed(group: Path) -> bool:
    try:
        group.rmdir()
    except OSError:  # the kernel has not done with one of them yet
        return False
    return True


def _ends(experiment: Experiment) -> list[tuple[int, EndReason]]:
    return [
        (event.attempt, event.reason)
        for event in experiment.events
        if isinstance(event, e.AttemptEnded)
    ]


@pytest.mark.parametrize("reuse", ["none", "forked", "inProcess"])
def test_the_kernel_kills_a_trial(
    reuse: str, little_memory: Path, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUNGRY_GROUP", str(little_memory))
    experiment = make(
        trials=1, reuse=reuse, trialFunction="hungry:eat", trialCodeDirectory=str(CODE)
    )
    experiment.create()
    assert experiment.lead_to_the_end() == 0
    assert _ends(experiment) == [(1, EndReason.OUT_OF_MEMORY), (2, EndReason.FINISHED)]


@pytest.mark.parametrize("way", ["function", "command"])
def test_python_is_refused_what_it_asks_for(
    way: str, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUNGRY_WAY", "ask")
    experiment = make(
        trials=1, reuse="none", trialFunction="hungry:ask", trialCodeDirectory=str(CODE)
    )
    if way == "command":
        values = experiment.values()
        del values["trialFunction"]
        values["trialCommand"] = f"'{sys.executable}' hungry.py"
        monkeypatch.setattr(experiment, "values", lambda: values)
    experiment.create()
    assert experiment.lead_to_the_end() == 0
    assert _ends(experiment) == [(1, EndReason.OUT_OF_MEMORY), (2, EndReason.FINISHED)]
