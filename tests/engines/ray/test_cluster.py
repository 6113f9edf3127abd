"""A real cluster: the conformance suite, faults and an experiment, in processes of their own, which
have a network of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.lengths import first
from tests.support.ray_cluster import alone, why_not

pytestmark = [
    pytest.mark.needs("ray"),
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]

ROOT = Path(__file__).parents[3]
LIMIT_S = 800


@pytest.mark.parametrize("suite", first(2, ["conformance", "experiments", "faults"]))
def test_a_cluster(suite: str, tmp_path: Path) -> None:
    """All of it passes, and no part is left out."""
    file = Path(__file__).parent / "suite" / f"{suite}.py"
    options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "dispatcher.conformance.plugin"]
    command = [sys.executable, "-m", "pytest", *options, f"--basetemp={tmp_path / 'tmp'}"]
    ran = subprocess.run(
        alone([*command, str(file)]),
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert " skipped" not in ran.stdout, ran.stdout
