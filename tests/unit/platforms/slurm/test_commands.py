"""Commands of this machine: bounded, and with their own variables."""

from __future__ import annotations

import sys
import time

import pytest

from dispatcher.errors import PassingBackendError, PermanentBackendError
from dispatcher.platforms.slurm.commands import MOST_BYTES, CommandLineHere, variables_for_commands


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_a_command_gets_its_input_and_gives_both_outputs() -> None:
    code = "import sys; print(sys.stdin.read()); print('no', file=sys.stderr); sys.exit(3)"
    assert CommandLineHere().run(python(code), stdin=b"hello") == (3, b"hello\n", b"no\n")


def test_one_that_hangs_is_ended_and_may_have_done_it() -> None:
    """Mutation: a controller that does not answer holds the thread for ever."""
    begun = time.monotonic()
    with pytest.raises(PassingBackendError, match="took longer than 1 s"):
        CommandLineHere(1.0).run(python("import signal; signal.pause()"))
    assert time.monotonic() - begun < 300


def test_of_an_output_that_is_too_large_no_part_is_taken_for_all() -> None:
    """Mutation: a list is cut off, and jobs beyond its end are taken as gone."""
    code = f"import sys; sys.stdout.write('x' * ({MOST_BYTES} + 1))"
    with pytest.raises(PassingBackendError, match="printed more than 16 MiB"):
        CommandLineHere().run(python(code))


def test_a_child_in_the_background_keeps_nobody_waiting() -> None:
    """Mutation: outputs are pipes."""
    child = "import os, signal\nif os.fork(): print('done')\nelse: signal.alarm(5), signal.pause()"
    assert CommandLineHere().run(python(child)).out == b"done\n"


def test_a_machine_without_slurm_says_so() -> None:
    with pytest.raises(PermanentBackendError, match="sbatch-of-nowhere cannot be run") as raised:
        CommandLineHere().run(["sbatch-of-nowhere"])
    assert "login node" in raised.value.hint


def test_variables_of_an_allocation_around_us_stay_here() -> None:
    """Mutation: a head that runs in a job asks for jobs that look like its own."""
    there = {
        "PATH": "/bin",
        "SLURM_CONF": "/etc/slurm.conf",
        "SLURM_JOB_ID": "7",
        "SLURM_MEM_PER_CPU": "100",
        "SLURM_TIME_FORMAT": "relative",
        "SQUEUE_PARTITION": "other",
        "SCANCEL_STATE": "PENDING",
        "SBATCH_ACCOUNT": "lab",
        "SBATCH_EXPORT": "ALL",
        "SBATCH_ARRAY_INX": "0-9",
    }
    assert set(variables_for_commands(there)) == {"PATH", "SLURM_CONF", "SBATCH_ACCOUNT"}
