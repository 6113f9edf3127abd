"""Examples in the docstrings that newcomers read first do what they say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

#: Each in a process and a folder of its own: some write weights, one is a trial by hand.
_PROGRAM = """
import doctest, importlib, sys
found = doctest.testmod(importlib.import_module(sys.argv[1]))
sys.exit("no example" if not found.attempted else found.failed)
"""


@pytest.mark.parametrize(
    "module", ["dispatcher.api", "tuners.base", "trial_runtime", "trial_runtime.weights"]
)
def test_examples_in_docstrings(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("BEQUEATH_HOME", str(tmp_path / "experiments"))
    monkeypatch.delenv("BEQUEATH_PARAMETERS", raising=False)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", _PROGRAM, module],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
