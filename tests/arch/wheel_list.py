"""Writes ``dispatcher/wheelhouse/wheels.sha256`` anew: the newest wheels for each Python.

``python -m tests.arch.wheel_list`` asks the index that pip is set up for; nothing is installed.
What changes in the file is to be looked at, and tried: ``integration/machines/test_bare_host.py``.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from dispatcher.wheelhouse import MODULES

PAGE = Path(__file__).parents[2] / "dispatcher" / "wheelhouse" / "wheels.sha256"

#: Newer ones of these leave 3.9 behind, and one file serves all Pythons.
PINNED = {"filelock": "3.19.1"}

MINORS = range(9, 15)
PLATFORMS = {
    "manylinux": ("2014", "_2_17", "_2_26", "_2_27", "_2_28"),
    "musllinux": ("_1_1", "_1_2"),
}
CPUS = ("x86_64", "aarch64")


def found(minor: int, libc: str, cpu: str) -> dict[str, str]:
    """File → digest of the newest that fit."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        words = ["install", "--dry-run", "--ignore-installed", "--quiet", "--no-deps"]
        words += ["--only-binary=:all:", "--implementation", "cp", "--target", folder]
        words += ["--python-version", f"3.{minor}", "--report", str(report)]
        words += [x for abi in (f"cp3{minor}", "abi3", "none") for x in ("--abi", abi)]
        words += [x for name in PLATFORMS[libc] for x in ("--platform", f"{libc}{name}_{cpu}")]
        projects = [f"{x}=={PINNED[x]}" if x in PINNED else x for x in MODULES.values()]
        subprocess.run([sys.executable, "-m", "pip", *words, *projects], check=True, timeout=600)
        told = json.loads(report.read_text())
    files = {}
    for each in told["install"]:
        source = each["download_info"]
        files[source["url"].rpartition("/")[2]] = source["archive_info"]["hashes"]["sha256"]
    return files


def main() -> None:
    """Write the list."""
    files: dict[str, str] = {}
    for minor, libc, cpu in itertools.product(MINORS, PLATFORMS, CPUS):
        files |= found(minor, libc, cpu)
    PAGE.write_text("".join(f"{files[name]}  {name}\n" for name in sorted(files)))


if __name__ == "__main__":
    main()
