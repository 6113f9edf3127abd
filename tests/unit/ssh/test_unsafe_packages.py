"""A torch that runs what hostile files say is named wherever a machine is looked over."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import version

import pytest

from dispatcher.cli import checkup
from dispatcher.cli.hosts import check_targets
from dispatcher.ssh import inspecting, program_text
from dispatcher.ssh.inspecting import HostNeeds, Severity
from trial_runtime.torch_version import why_unsafe


def told(*packages: str) -> dict[str, object]:
    """What this machine's Python says, as one elsewhere does."""
    program = program_text("probe")
    words = json.dumps({"modules": [], "packages": packages, "folders": {}})
    ran = subprocess.run(
        [sys.executable, "-", words], input=program, capture_output=True, text=True, check=True
    )
    found = json.loads(ran.stdout.splitlines()[-1])
    assert isinstance(found, dict)
    return found


def test_a_machine_says_which_version_it_has_without_importing_it() -> None:
    found = told("numpy", "no-such-package")
    assert found["packages"] == {"numpy": version("numpy"), "no-such-package": ""}


@pytest.mark.parametrize("has, named", [("2.5.1+cu121", True), ("2.10.0", False), ("", False)])
def test_an_unsafe_torch_there_is_a_note(has: str, named: bool) -> None:
    needs = HostNeeds(unsafe={"torch": why_unsafe})
    machine = {"executable": "/opt/python", "packages": {"torch": has}}
    found = list(inspecting._packages(machine, needs))
    assert [(one.topic, one.verdict) for one in found] == [("torch", Severity.NOTE)] * named
    if named:
        assert "torch 2.5.1+cu121 runs what a hostile file" in found[0].text
        assert found[0].hint == "/opt/python -m pip install --upgrade torch"


def test_hosts_check_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    (machine,) = check_targets.check_targets("somewhere", "python3", "", "")
    assert machine.needs.unsafe["torch"]("2.9.1")


@pytest.mark.parametrize("has, word", [("2.9.1", "CVE-2026-24747"), ("2.13.0", "2.13.0")])
def test_doctor_names_the_one_here(monkeypatch: pytest.MonkeyPatch, has: str, word: str) -> None:
    monkeypatch.setattr(checkup, "_version", lambda name: has if name == "torch" else "9.9")
    (found,) = [one for one in checkup.check_packages() if one.topic == "torch"]
    assert word in found.text
    assert (found.level is checkup.Level.NOTE) == bool(why_unsafe(has))
