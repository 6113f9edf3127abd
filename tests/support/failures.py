"""A plugin of pytest that writes failures down as they come: ``--failures=FILE``.

A JSON line for each: the test, when it failed (setup, call, teardown, collect) and the first
line of the error; one for each test that is left out, with the reason; one for each file, with its
seconds, and those of the processors for it and the processes that it waited for. A run that is
killed leaves those that it had seen, and no last line, which says that all tests have run.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import NamedTuple

import pytest

#: The one command after which tests that were left out for want of packages run. Each reason to
#: leave a test out that it removes ends with it.
ENABLES = "sudo make enable"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds ``--failures``."""
    parser.addoption("--failures", metavar="FILE", help="write failures here, a JSON line each")


def pytest_configure(config: pytest.Config) -> None:
    """Begins to write, if asked."""
    if path := config.getoption("--failures"):
        config.pluginmanager.register(_Clerk(Path(path)))


class _Clerk:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._path.touch()
        self._file, self._began = "", _clocks()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        file = nodeid.partition("::")[0]
        if file != self._file:
            self._file_ends()
            self._file = file

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._write(report.nodeid, report.when or "", report)
        elif report.skipped and not hasattr(report, "wasxfail"):
            self._left_out(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._write(report.nodeid, "collect", report)
        elif report.skipped:
            self._left_out(report)

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        self._file_ends()
        if exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            with self._path.open("a") as file:
                file.write(json.dumps({"finished": True}) + "\n")

    def _file_ends(self) -> None:
        """What a file took: from its first test's start to that of the next file's."""
        now = _clocks()
        if self._file:
            took = [round(b - a, 2) for a, b in zip(self._began, now, strict=True)]
            with self._path.open("a") as file:
                file.write(json.dumps({"file": self._file, "took": took}) + "\n")
        self._began = now

    def _left_out(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
        row = {"left_out": report.nodeid, "reason": str(reason).removeprefix("Skipped: ")}
        with self._path.open("a") as file:
            file.write(json.dumps(row) + "\n")

    def _write(
        self, test: str, when: str, report: pytest.TestReport | pytest.CollectReport
    ) -> None:
        row = {"test": test, "when": when, "error": _first_line(report)}
        with self._path.open("a") as file:
            file.write(json.dumps(row) + "\n")


def _clocks() -> tuple[float, float]:
    """Seconds on the wall, and of processors: ours and those of processes we waited for."""
    used = os.times()
    return time.monotonic(), used.user + used.system + used.children_user + used.children_system


def _first_line(report: pytest.TestReport | pytest.CollectReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None:
        text = str(crash.message)
    else:  # collection, fixtures that are not found, strict xfail: the last line names the error
        text = "\n".join(report.longreprtext.strip().splitlines()[-1:])
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0].removeprefix("E   ").strip() if lines else "no words"


class Outcome(NamedTuple):
    """What a run has written.

    Attributes:
        failed: the first error of each test, with the phase where it is not the test itself.
        left_out: the reason of each test that was left out.
        whole: whether all tests have run.
        took: by file, its seconds on the wall and of processors.
    """

    failed: dict[str, str]
    left_out: dict[str, str]
    whole: bool
    took: dict[str, tuple[float, float]]


def read(path: Path) -> Outcome:
    """What failed, what was left out, and how long each file took."""
    took: dict[str, tuple[float, float]] = {}
    found: dict[str, str] = {}
    left_out: dict[str, str] = {}
    finished = False
    for line in path.read_text().splitlines() if path.exists() else []:
        row = json.loads(line)
        if "finished" in row:
            finished = True
            continue
        if "took" in row:
            took[row["file"]] = (row["took"][0], row["took"][1])
            continue
        if "left_out" in row:
            left_out[row["left_out"]] = row["reason"]
            continue
        phase = "" if row["when"] == "call" else f"[{row['when']}] "
        found.setdefault(row["test"], phase + row["error"])
    return Outcome(found, left_out, finished, took)
