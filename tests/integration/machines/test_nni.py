"""An experiment file of NNI's v1 for remote machines, as it is, on hosts with a real sshd."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from dispatcher.core import events as e
from dispatcher.experiment import load_experiment
from dispatcher.experiments.creating import create
from tests.integration.machines.conftest import Lab
from tests.support.ssh_hosts import why_not

pytestmark = [
    pytest.mark.needs("sshd"),
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]

EXAMPLE = Path(__file__).parents[3] / "examples" / "nni_classic"


def test_a_v1_file_for_remote_machines_runs_as_it_is(lab: Lab, tmp_path: Path) -> None:
    ignored = shutil.ignore_patterns("weights", "__pycache__")
    code = Path(shutil.copytree(EXAMPLE, tmp_path / "example", ignore=ignored))
    machine = lab.machine("h1")
    text = (code / "config_v1.yml").read_text().replace("maxTrialNum: 8", "maxTrialNum: 3")
    text = text.replace("Platform: local", "Platform: remote").replace("  gpuNum: 0\n", "")
    # What this house needs beside NNI's own keys: its Python, and whose key the host has.
    text += (
        f"logDir: {lab.base / 'experiments'}\n"
        f"machineList:\n  - ip: {machine['host']}\n    username: root\n"
        f"    sshKeyPath: {machine['keyFile']}\n"
        f"    pythonPath: {Path(machine['python']).parent}\n"
        f"    knownHosts: {machine['knownHosts']}\n"
    )
    file = code / "remote.yml"
    file.write_text(text)
    folder = create(load_experiment(file))
    lab.folders.append(folder)
    lab.finish(folder, lab.lead(folder))
    finals = [json.loads(each.value) for each in lab.events(folder, e.FinalReported)]
    assert len(finals) == 3
    assert all(set(value) == {"default", "end"} for value in finals)
    assert set(lab.ended_on(folder).values()) == {machine["host"]}
