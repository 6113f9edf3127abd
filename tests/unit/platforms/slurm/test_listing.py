"""What ``squeue`` prints, read."""

from __future__ import annotations

import pytest

from dispatcher.platforms.slurm.listing import COLUMNS, Job, list_command, read_list, seconds_of
from tests.unit.platforms.slurm.recorded import PREFIX, VERSIONS, listed


def jobs(version: str, name: str) -> dict[str, list[Job]]:
    by_name: dict[str, list[Job]] = {}
    for job in read_list(listed(version, name), PREFIX):
        by_name.setdefault(job.name.removeprefix(PREFIX), []).append(job)
    return by_name


@pytest.mark.parametrize("version", VERSIONS)
def test_all_versions_print_the_same(version: str) -> None:
    """Mutation: another column, or another width."""
    there = jobs(version, "mixed")
    (done,), (failed,), (held,) = there["1-1"], there["2-1"], there["6-1"]
    assert (done.state, done.nodes, done.reason) == ("COMPLETED", "n1", "")
    assert (failed.state, failed.reason) == ("FAILED", "NonZeroExitCode")
    assert (held.state, held.reason, held.nodes) == ("PENDING", "JobHeldUser", "")
    (short,), (long,), (free,) = there["3-1"], there["5-1"], there["9-1"]
    assert short.left_s is not None
    assert 40 < short.left_s <= 60
    assert long.left_s is not None
    assert 0 < 26 * 3600 - long.left_s < 60
    assert free.left_s is None
    assert 3 <= free.waiting_s <= 10


@pytest.mark.parametrize("version", VERSIONS)
def test_a_reason_may_be_a_sentence(version: str) -> None:
    (waits,) = jobs(version, "late")["9-1"]
    assert waits.reason == (
        "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority "
        "partitions"
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_tasks_of_an_array_are_told_apart(version: str) -> None:
    """Mutation: the number of the job, which is that of the array for all that wait."""
    tasks = jobs(version, "mixed")["14-1"]
    assert len({job.id for job in tasks}) == len(tasks) == 4
    assert all("_" in job.id for job in tasks)


@pytest.mark.parametrize("version", VERSIONS)
def test_jobs_of_others_are_passed_over(version: str) -> None:
    """One is called ``somebody|else ü``; columns count bytes."""
    text = listed(version, "mixed")
    assert "somebody|else ü".encode() in text
    lines = text.splitlines()
    assert {len(line) for line in lines} == {sum(width for _, width in COLUMNS)}
    assert len(list(read_list(text, PREFIX))) == len(lines) - 1
    assert len(list(read_list(text, "somebody"))) == 1


def test_what_is_no_list_is_none() -> None:
    """A warning, a header of a federation, half a line, no text at all."""
    for text in (b"", b"\n\n", b"CLUSTER: far\n", b"squeue: warning\n", b"12  ", b"\xff" * 900):
        assert list(read_list(text, PREFIX)) == []
    (half,) = read_list(b"12".ljust(32) + PREFIX.encode() + b"1-1", PREFIX)
    assert half == Job("12", f"{PREFIX}1-1", "")


@pytest.mark.parametrize(
    "text, seconds",
    [
        ("0:57", 57),
        ("59:57", 3597),
        ("1:00:00", 3600),
        ("1-01:59:57", 93597),
        ("364-23:59:58", 31535998),
        ("UNLIMITED", None),
        ("INVALID", None),
        ("NOT_SET", None),
        ("", None),
    ],
)
def test_times(text: str, seconds: float | None) -> None:
    assert seconds_of(text) == seconds


def test_one_command_lists_all_that_one_user_has() -> None:
    command = list_command("1000")
    assert command[0] == "squeue"
    assert {"--user=1000", "--states=all", "--array", "--noheader"} <= set(command)
