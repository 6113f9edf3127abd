"""The README's commands, run as written, in a fresh clone and a fresh virtual environment.

Installs PyTorch once more and runs the demo, which takes minutes, so it runs in CI and where
BEQUEATH_TEST_README=1 asks for it.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.support.lengths import EXTENDED
from tests.support.processes import left_of

ROOT = Path(__file__).resolve().parents[2]
WANTED = os.environ.get("CI") == "true" or os.environ.get("BEQUEATH_TEST_README") == "1"

#: What another environment, or the make that runs us, would have a say in.
FOREIGN = {"VIRTUAL_ENV", "PYTHONPATH", "MAKEFLAGS", "MAKEOVERRIDES", "MFLAGS", "MAKELEVEL"}


def _commands() -> list[str]:
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    lines = [line.split("#")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line]


@pytest.mark.timeout(3000)
@pytest.mark.skipif(not WANTED, reason="takes minutes; enable with BEQUEATH_TEST_README=1")
def test_the_readmes_commands_run_as_written(tmp_path: Path) -> None:
    clone = tmp_path / "bequeath"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
    environment = {
        **{k: v for k, v in os.environ.items() if k not in FOREIGN},
        "TESTS": "fuzz",  # `make test` as written, but not all of it inside of itself
        "BEQUEATH_HOME": str(tmp_path / "home"),
        **({} if EXTENDED else {"DEMO_TRIALS": "40"}),
    }
    commands = _commands()
    assert commands[:2] == ["make demo", "make test"]
    for command in commands:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=clone,
            env=environment,
            capture_output=True,
            text=True,
            timeout=1800,  # beside all other tests, on a machine of two cores
        )
        assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        if command == "make demo":
            assert re.search(r"(\d+) trials: \1 succeeded", done.stdout), done.stdout[-2000:]
            assert re.search(r"^http://127\.0\.0\.1:\d+/login\?once=", done.stderr, re.M), (
                done.stderr
            )
            pictures = {p.name for p in (tmp_path / "home" / "pictures").iterdir()}
            assert pictures == {"progress.png", "parallel.png", "lineage.png"}
    assert left_of(tmp_path) == []
