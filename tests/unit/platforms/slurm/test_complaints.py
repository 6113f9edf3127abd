"""What Slurm's commands complain of, recorded, and whether it passes."""

from __future__ import annotations

import pytest

from dispatcher.errors import BackendError, PassingBackendError, PermanentBackendError
from dispatcher.platforms.slurm.complaints import complaint, is_about_ended
from tests.unit.platforms.slurm.recorded import TEXTS, VERSIONS, exchanges


def refusals(version: str, name: str = "answers") -> dict[str, BackendError]:
    return {
        " ".join(each.command): complaint(each.command[0], each.code, each.text, where="slurm")
        for each in exchanges(version, name)
        if each.code
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_what_a_controller_refuses_was_certainly_not_taken(version: str) -> None:
    """Mutation: all of it passes."""
    there = {k: v for k, v in refusals(version).items() if k.startswith("sbatch")}
    assert len(there) == 9
    assert all(isinstance(each, PermanentBackendError) for each in there.values())
    gres = there["sbatch --parsable --gres gpu:a100:5 --wrap true"]
    assert str(gres) == (
        "slurm: sbatch: Requested node configuration is not available\n"
        "  `sinfo -o '%P %c %m %G'` lists CPUs, memory and generic resources"
    )
    unknown = there["sbatch --parsable --nonsense 4 --wrap true"]
    assert unknown.message == "sbatch: unrecognized option '--nonsense'"
    nowhere = there["sbatch --parsable -p nosuch --wrap true"]
    assert "Invalid partition name specified" in nowhere.message
    assert "sinfo" in nowhere.hint


@pytest.mark.parametrize(
    "version", [each for each in VERSIONS if (TEXTS / each / "away.txt").exists()]
)
def test_a_controller_that_is_away_comes_back(version: str) -> None:
    """Mutation: two minutes without it are a reason to give workers up."""
    there = refusals(version, "away")
    assert len(there) == 5
    assert all(isinstance(each, PassingBackendError) for each in there.values())


@pytest.mark.parametrize(
    "text",
    [
        "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation",
        "sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying.",
        "sbatch: error: Batch job submission failed: MaxJobCount limit reached",
        "sbatch: error: QOSMaxSubmitJobPerUserLimit\n"
        "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit"
        " limit, user's size and/or time limits)",
        'squeue: error: Munge encode failed: Failed to access "/run/munge/munge.socket.2"',
        "slurm_load_jobs error: Zero Bytes were transmitted or received",
        "squeue: error: Rate limit exceeded, please retry momentarily",
        "sbatch: error: Batch job submission failed: Required partition not available (inactive or "
        "drain)",
    ],
)
def test_texts_of_the_documentation_that_pass(text: str) -> None:
    assert isinstance(complaint("sbatch", 1, text.encode(), where=""), PassingBackendError)


def test_a_command_that_says_nothing() -> None:
    assert complaint("sbatch", 9, b"", where="").message == (
        "sbatch: ended with status 9 and said nothing"
    )


def test_the_end_of_what_has_ended_is_no_complaint() -> None:
    """Mutation: a cancellation that came too late is repeated for ever."""
    over = b"scancel: error: Kill job error on job id 7: Job/step already completing or completed\n"
    unknown = b"scancel: error: Kill job error on job id 7: Invalid job id specified\n"
    away = b"scancel: error: Kill job error on job id 7: Unable to contact slurm controller\n"
    assert is_about_ended(over + unknown)
    assert not is_about_ended(over + away)
