"""The set-up code that travels, run by a Python that has nothing of ours; it leaves nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import zlib
from pathlib import Path
from typing import Any

import pytest

from dispatcher.cli.nfs.login import setup_program

#: Not the interpreter of the tests: that one has our packages.
SYSTEM = shutil.which("python3", path="/usr/bin:/bin")

pytestmark = pytest.mark.skipif(SYSTEM is None, reason="the system has no Python 3 of its own")


def run(folder: Path, code: bytes, request: dict[str, Any]) -> subprocess.CompletedProcess[bytes]:
    assert SYSTEM is not None
    return subprocess.run(
        setup_program().command(SYSTEM),
        input=code + json.dumps(request).encode(),
        capture_output=True,
        cwd=folder,
        timeout=240,
        env={"PATH": os.defpath, "TMPDIR": str(folder), "HOME": str(folder)},
    )


def test_a_python_without_our_packages_carries_a_request_out(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('imported from where it was run')")
    plan = {"verb": "client", "source": "s:/w", "point": "/mnt/bequeath-no", "dry_run": True}
    ran = run(tmp_path, setup_program().code, plan)
    assert (ran.returncode, ran.stderr) == (0, b""), ran.stdout
    assert json.loads(ran.stdout)["target"] == "/mnt/bequeath-no"
    assert os.listdir(tmp_path) == ["json.py"], "nothing is left"


def test_a_fault_comes_back_as_an_answer(tmp_path: Path) -> None:
    ran = run(tmp_path, setup_program().code, {"verb": "fly"})
    assert ran.returncode == 1
    assert json.loads(ran.stdout)["error"]["kind"] == "RequestRefused"


def test_code_that_did_not_arrive_whole_is_not_run(tmp_path: Path) -> None:
    code = setup_program().code
    spoilt = code[:-1] + bytes([code[-1] ^ 1])
    for wrong in (spoilt, code[:1000], b""):
        ran = run(tmp_path, wrong, {})
        assert ran.returncode == 1
        assert b"did not arrive whole" in ran.stderr
        assert ran.stdout == b""


def test_what_is_not_needed_there_stays_here() -> None:
    names = json.loads(zlib.decompress(setup_program().code))["modules"].keys()
    assert "nfs_setup.verbs" in names
    assert not [name for name in names if "cluster" in name], "stays here"
    assert len(setup_program().code) < 1 << 20
