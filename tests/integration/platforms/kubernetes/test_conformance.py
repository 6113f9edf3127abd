"""The conformance suite over the platform ``kubernetes``, on a server of our own whose pods are
processes of this machine; judged by the published contract, on both versions that it plays."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.lengths import first

pytestmark = pytest.mark.timeout(900)

ROOT = Path(__file__).parents[4]
SUITE = ROOT / "tests/support/kubernetes/conformance.py"

#: What the suite leaves out where a platform itself shows no files of attempts, and the head asks
#: agents for them: files of several attempts by one way.
NO_FILES = 1


@pytest.mark.slow
@pytest.mark.parametrize("version", first(1, ["1.36", "1.20"]))
def test_a_cluster_of_our_own(version: str, tmp_path: Path) -> None:
    plugin = ["-p", "dispatcher.conformance.plugin", "-p", "no:cacheprovider"]
    words = ["-q", "-x", "-rs", *plugin, f"--rootdir={tmp_path}", "-c", os.devnull, str(SUITE)]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *words, f"--basetemp={tmp_path / 'tmp'}"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PLAYED_VERSION": version},
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert f"{NO_FILES} skipped" in ran.stdout, ran.stdout
