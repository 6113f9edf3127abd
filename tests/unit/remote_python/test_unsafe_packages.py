"""A torch that runs what hostile files say is named wherever a machine is looked over."""

from __future__ import annotations

from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path

import pytest

from dispatcher.cli import checkup
from dispatcher.cli.hosts import check_targets
from dispatcher.findings import Severity
from dispatcher.remote_python.findings import HostNeeds, findings_of
from dispatcher.remote_python.probed import Probe, probe
from tests.support.remote_python import python_here
from tests.unit.remote_python.answers import fit_machine
from trial_runtime.torch_version import why_unsafe


def test_a_machine_says_which_version_it_has_without_importing_it(tmp_path: Path) -> None:
    packages = ("numpy", "no-such-package")
    found = probe(python_here(), Probe(str(tmp_path), modules=(), packages=packages))
    assert found.packages == {"numpy": version("numpy"), "no-such-package": ""}


@pytest.mark.parametrize("has, named", [("2.5.1+cu121", True), ("2.10.0", False), ("", False)])
def test_an_unsafe_torch_there_is_a_note(has: str, named: bool) -> None:
    needs = HostNeeds(unsafe={"torch": why_unsafe})
    machine = fit_machine(executable="/opt/python", packages={"torch": has})
    found = [one for one in findings_of(machine, "python3", needs) if one.topic == "torch"]
    assert [(one.topic, one.severity) for one in found] == [("torch", Severity.NOTE)] * named
    if named:
        assert "torch 2.5.1+cu121 runs what a hostile file" in found[0].text
        assert found[0].hint == "/opt/python -m pip install --upgrade torch"


def test_hosts_check_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with ExitStack() as closing:
        (machine,) = check_targets.check_targets("somewhere", closing)
    assert machine.needs.unsafe["torch"]("2.9.1")


@pytest.mark.parametrize("has, word", [("2.9.1", "CVE-2026-24747"), ("2.13.0", "2.13.0")])
def test_doctor_names_the_one_here(monkeypatch: pytest.MonkeyPatch, has: str, word: str) -> None:
    monkeypatch.setattr(checkup, "_version", lambda name: has if name == "torch" else "9.9")
    (found,) = [one for one in checkup.check_packages() if one.topic == "torch"]
    assert word in found.text
    assert (found.severity is Severity.NOTE) == bool(why_unsafe(has))
