"""The conformance suite over the platform ``trainer``, on a server of our own with Kubeflow Trainer
played; judged by the published definitions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(900)

ROOT = Path(__file__).parents[4]
SUITE = ROOT / "tests/support/kubernetes/conformance.py"

#: What the suite leaves out where a platform itself shows no files of attempts, and the head asks
#: agents for them: files of several attempts by one way.
NO_FILES = 1


@pytest.mark.slow
@pytest.mark.extended  # a real API server judges it at each landing: tests/engines
@pytest.mark.extended
def test_a_cluster_of_our_own(tmp_path: Path) -> None:
    plugin = ["-p", "dispatcher.conformance.plugin", "-p", "no:cacheprovider"]
    words = ["-q", "-x", "-rs", *plugin, f"--rootdir={tmp_path}", "-c", os.devnull, str(SUITE)]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *words, f"--basetemp={tmp_path / 'tmp'}"],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PLAYED_SERVICE": json.dumps({"platform": "trainer", "runtimeRef": "of-agents"}),
            "PLAYED_OPERATORS": "tests.support.kubernetes.trainer_controller:trainer_operators",
        },
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert f"{NO_FILES} skipped" in ran.stdout, ran.stdout
