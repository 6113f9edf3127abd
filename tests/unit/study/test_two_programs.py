"""Two programs that make one study at the same moment."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dispatcher.errors import UserError
from dispatcher.queries import ExperimentReader
from dispatcher.study import making
from trial_runtime import failpoints

_PROGRAM = """
import sys
import bequeath as bq
import dispatcher.study
from dispatcher.errors import DispatcherError
sys.stdin.readline()
print("begins", flush=True)
try:
    with bq.Study({"x": bq.uniform(0, 1)}, folder=sys.argv[1], tuner="Random") as study:
        study.tell(study.ask(), 1)
        print("got it", flush=True)
        sys.stdin.readline()
except DispatcherError as error:
    print(type(error).__name__, error.message, flush=True)
"""


def started(folder: Path, plan: str = "") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, failpoints.VARIABLE: plan},
    )


def tell(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


@pytest.mark.parametrize(
    "where", ["create.folder.made", "create.config.written", "create.journal.made"]
)
def test_one_gets_the_folder_and_the_other_a_sentence(tmp_path: Path, where: str) -> None:
    """One stands still at a step of the making while the other one comes. Mutations: nobody waits;
    the half folder is taken for a study, or for something that is none."""
    folder = tmp_path / "one"
    with started(folder, f"{where}=stop") as slow, started(folder) as quick:
        assert quick.stdout is not None
        assert slow.stdout is not None
        tell(slow)
        os.waitid(os.P_PID, slow.pid, os.WSTOPPED | os.WNOWAIT)
        try:
            tell(quick)
            assert quick.stdout.readline() == "begins\n"
            with pytest.raises(subprocess.TimeoutExpired):
                quick.wait(0.5)  # it has neither got the folder nor been refused
        finally:
            slow.send_signal(signal.SIGCONT)
        assert slow.stdout.readline() == "begins\n"
        told = {slow.stdout.readline(), quick.stdout.readline()}
        assert "got it\n" in told
        assert all(each.startswith("ExperimentBusy a head already") for each in told - {"got it\n"})
        assert len(told) == 2
        for each in (slow, quick):
            each.communicate("\n")
            assert each.returncode == 0
    with ExperimentReader.open(folder) as reader:
        found = reader.rows("SELECT number FROM trials WHERE number IS NOT NULL")
        assert [each["number"] for each in found] == [1]


def test_a_program_that_hangs_there_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: a folder that another process has locked is waited for without an end."""
    monkeypatch.setattr(making, "PATIENCE_S", 0.1)
    other = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    try:
        with (
            pytest.raises(UserError, match="another process has locked"),
            making.alone_in(tmp_path),
        ):
            pass
    finally:
        os.close(other)
    with making.alone_in(tmp_path), making.alone_in(tmp_path / "new"):
        assert (tmp_path / "new").is_dir()
