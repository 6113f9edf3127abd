"""The code that travels: run by a Python that has nothing of ours, leaving nothing behind."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from nfs_setup.cluster import bundle

#: Not the interpreter of the tests: that one has our packages.
SYSTEM = shutil.which("python3", path="/usr/bin:/bin")

pytestmark = pytest.mark.skipif(SYSTEM is None, reason="the system has no Python 3 of its own")


def run(folder: Path, code: bytes, request: dict[str, Any]) -> subprocess.CompletedProcess[bytes]:
    assert SYSTEM is not None
    return subprocess.run(
        bundle.command(SYSTEM),
        input=code + json.dumps(request).encode(),
        capture_output=True,
        cwd=folder,
        timeout=240,
        env={"PATH": os.defpath, "TMPDIR": str(folder), "HOME": str(folder)},
    )


def test_a_python_without_our_packages_carries_a_request_out(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('imported from where it was run')")
    plan = {"verb": "client", "source": "s:/w", "point": "/mnt/bequeath-no", "dry_run": True}
    ran = run(tmp_path, bundle.packed(), plan)
    assert (ran.returncode, ran.stderr) == (0, b""), ran.stdout
    assert json.loads(ran.stdout)["target"] == "/mnt/bequeath-no"
    assert os.listdir(tmp_path) == ["json.py"], "nothing is left"


def test_a_fault_comes_back_as_an_answer(tmp_path: Path) -> None:
    ran = run(tmp_path, bundle.packed(), {"verb": "fly"})
    assert ran.returncode == 1
    assert json.loads(ran.stdout)["error"]["kind"] == "RequestRefused"


def test_code_that_did_not_arrive_whole_is_not_run(tmp_path: Path) -> None:
    code = bundle.packed()
    spoilt = code[:-1] + bytes([code[-1] ^ 1])
    for wrong in (spoilt, code[:1000], b""):
        ran = run(tmp_path, wrong, {})
        assert ran.returncode == 1
        assert b"did not arrive whole" in ran.stderr
        assert ran.stdout == b""


def test_it_is_the_same_bytes_for_the_same_code() -> None:
    first = bundle.packed()
    bundle.packed.cache_clear()
    assert bundle.packed() == first
    with zipfile.ZipFile(BytesIO(first)) as archive:
        names = archive.namelist()
    assert "nfs_setup/verbs.py" in names
    assert not [name for name in names if "cluster" in name], "stays here"
    assert len(first) < 1 << 20
