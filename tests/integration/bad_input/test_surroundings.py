"""A full disk, a port in use, a second head: the world outside, and who is told what."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from dispatcher.core.model import EndReason
from tests.integration.bad_input.conftest import TUNER, User
from tests.support.processes import processes_of, wait_until


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MB; mounting one takes root."""
    place = tmp_path / "disk"
    place.mkdir()
    if os.geteuid() != 0:
        pytest.skip("mounting takes root")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", place], capture_output=True, text=True
    )
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount: {mounted.stderr.strip()}")
    try:
        yield place
    finally:
        # Lazily: what a test left behind may still hold it.
        subprocess.run(["umount", "--lazy", place], check=True)


SAVES = TUNER.replace('"n": parameter_id}', '"n": parameter_id, "save_path": f"t{parameter_id}"}')

LARGE = """\
import numpy as np

import trial_runtime as bq


def main(parameters):
    size = 4_000_000 if parameters["n"] == 1 else 1_000
    bq.save_weights({"w": np.random.default_rng(parameters["n"]).random(size)})
    return float(parameters["n"])
"""


def test_weights_that_do_not_fit_on_the_disk(user: User, small_disk: Path) -> None:
    """The trial fails with what it needed and the path; nothing half-written is published."""
    user.write("tuner.py", SAVES)
    user.write("trial.py", LARGE)
    answer = user.run(weightsRoot=str(small_disk / "weights"), trialConcurrency=1)
    assert answer.code == 0, answer
    ended = user.ended()
    assert ended[1].reason is EndReason.FAILED
    assert "DiskFull" in ended[1].text
    assert "32,000,000 bytes" in ended[1].text or "32,0" in ended[1].text, ended[1].text
    assert "bequeath weights gc" in ended[1].text
    assert [ended[n].reason for n in (0, 2)] == [EndReason.FINISHED] * 2
    assert "end 1 False" in user.heard()
    assert list((small_disk / "weights").glob("t1/*.safetensors")) == []


FILLS = """\
import os
from tests.support import hold


def main(parameters):
    if parameters["n"] == 2 and not os.path.exists("freed"):
        with open(os.environ["FILLER"], "wb", buffering=0) as file:
            size = 1 << 16
            while size:
                try:
                    file.write(b"x" * size)
                except OSError:
                    size //= 2
        hold.pace(0.2)
    return float(parameters["n"])
"""


def test_a_journal_that_cannot_be_written(user: User, small_disk: Path) -> None:
    """The head stops with exit code 4 and a hint; with space again, resume completes."""
    filler = small_disk / "filler"
    user.write("trial.py", FILLS)
    answer = user.type(
        "run",
        user.experiment(
            experimentWorkingDirectory=str(small_disk / "kept"),
            maxTrialNumber=40,
            trialConcurrency=1,
            headGrace="2s",
            trialEnvironment={"FILLER": str(filler)},
        ),
    )
    user.kept = small_disk / "kept"
    assert answer.code == 4, answer
    assert "no space" in answer.err.lower() or "full" in answer.err.lower(), answer.err
    assert "bequeath resume" in answer.err, answer.err
    assert "Traceback" not in answer.err
    filler.unlink()
    user.write("freed", "")
    again = user.type("resume", str(user.lab))
    assert again.code == 0, again
    user.assert_intact()
    results = sorted(int(line.split()[1]) for line in user.heard() if line.startswith("result"))
    assert sorted(set(results)) == list(range(40))


def test_a_port_that_is_taken(user: User) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        answer = user.run(channel={"transport": "tcp", "port": port})
    assert answer.code == 4, answer
    assert str(port) in answer.err
    assert "in use" in answer.err
    assert "Traceback" not in answer.err
    assert user.type("resume").code == 0
    user.assert_intact()


def test_a_second_head_harms_nobody(user: User) -> None:
    user.write(
        "trial.py",
        "import os\nfrom tests.support import hold\n\n\ndef main(parameters):\n"
        "    hold.until('go')\n    return 1.0\n",
    )
    first = user.start("run", user.experiment())
    user.wait_until_running(2)
    second = user.type("resume", user.lab.name, "--folder", str(user.kept))
    assert second.code == 3, second
    assert f"a head already leads this experiment: process {first.pid}" in second.err
    assert "Traceback" not in second.err
    user.write("go", "")
    assert user.finish(first).code == 0
    user.assert_intact()


def test_a_working_directory_that_cannot_be_written(user: User) -> None:
    user.write("file", "")
    answer = user.type("run", user.experiment(experimentWorkingDirectory="file/kept"))
    assert answer.code in (3, 4), answer
    assert "file" in answer.err
    assert "Traceback" not in answer.err


def test_a_journal_that_is_not_one(user: User) -> None:
    assert user.run(maxTrialNumber=1).code == 0
    (user.lab / "journal.sqlite").write_bytes(b"not a database " * 1000)
    for name in ("journal.sqlite-wal", "journal.sqlite-shm"):
        (user.lab / name).unlink(missing_ok=True)
    answer = user.type("resume", str(user.lab))
    assert answer.code == 4, answer
    assert "journal.sqlite" in answer.err
    assert "Traceback" not in answer.err


def test_a_head_killed_while_it_starts_leaves_nothing(user: User) -> None:
    first = user.start("run", user.experiment(headGrace="1s", maxTrialNumber=5))
    wait_until(lambda: list(user.kept.glob("*/run.json")), "it began")
    first.kill()
    first.communicate()
    wait_until(lambda: _nothing_left(user), "its processes are gone")
    assert user.type("resume", str(user.lab)).code == 0
    user.assert_intact()
    results = [line for line in user.heard() if line.startswith("result")]
    assert {line.split()[1] for line in results} == {str(n) for n in range(5)}


def _nothing_left(user: User) -> bool:
    return processes_of(user.lab) == []
