"""A Slurm of a few lines behind its commands: jobs in a table, and faults on demand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dispatcher.errors import PassingBackendError
from dispatcher.platforms.slurm.commands import CommandEnd
from dispatcher.platforms.slurm.listing import COLUMNS

AWAY = b"error: Unable to contact slurm controller (connect failure)\n"

NO_ARRAYS = b"sbatch: error: Batch job submission failed: Invalid job array specification\n"


@dataclass(frozen=True)
class Row:
    """A job as its controller has it."""

    name: str
    state: str = "PENDING"
    reason: str = "None"
    left: str = "UNLIMITED"
    nodes: str = ""
    waiting: int = 0
    script: bytes = b""
    command: tuple[str, ...] = ()


class ScriptedSlurm:
    """See :class:`dispatcher.platforms.slurm.commands.CommandLine`.

    Attributes:
        jobs: by their number; tasks of an array by theirs behind it.
        commands: all that were run.
        away: whether the controller does not answer.
        refusal: what ``sbatch`` says, if it takes nothing.
        accounts: the states of jobs that ``sacct`` knows, by name; None: there is no accounting.
        has_arrays: whether the cluster allows them.
        loses_answer: whether the next ``sbatch`` takes the job, and nobody hears of it.
    """

    def __init__(self) -> None:
        self.jobs: dict[int | str, Row] = {}
        self.commands: list[list[str]] = []
        self.away = False
        self.refusal = b""
        self.accounts: dict[str, str] | None = None
        self.account_numbers: dict[str, str] = {}  # of jobs there, where they matter
        self.has_arrays = True
        self.loses_answer = False

    user = "0"

    def close(self) -> None:
        """See :meth:`CommandLine.close`."""

    def run(self, command: Sequence[str], *, stdin: bytes = b"") -> CommandEnd:
        """See :meth:`CommandLine.run`."""
        self.commands.append(list(command))
        if self.away:
            return CommandEnd(1, b"", AWAY)
        done: CommandEnd = getattr(self, f"_{command[0]}")(list(command[1:]), stdin)
        return done

    def says(self, name: str, state: str, **more: object) -> None:
        """Change what is listed of all jobs of a name."""
        for number, row in self.jobs.items():
            if row.name == name:
                self.jobs[number] = replace(row, state=state, **more)  # type: ignore[arg-type]

    def says_of(self, number: str, state: str) -> None:
        """Change what is listed of one job."""
        self.jobs[number] = replace(self.jobs[number], state=state)

    def many(self, program: str) -> int:
        """How often a program was run."""
        return sum(command[0] == program for command in self.commands)

    def _sbatch(self, arguments: list[str], stdin: bytes) -> CommandEnd:
        if self.refusal:
            return CommandEnd(1, b"", self.refusal)
        name = _value(arguments, "--job-name")
        number = len(self.jobs) + 1
        row = Row(name, script=stdin, command=tuple(arguments))
        tasks = _value(arguments, "--array")
        if tasks and not self.has_arrays:
            return CommandEnd(1, b"", NO_ARRAYS)
        last = int(tasks.removeprefix("0-") or 0)
        numbers = [f"{number}_{task}" for task in range(last + 1)] if tasks else [number]
        self.jobs |= dict.fromkeys(numbers, row)
        if self.loses_answer:
            self.loses_answer = False
            raise PassingBackendError("sbatch took longer than 60 s, and was ended")
        return CommandEnd(0, f"{number}\n".encode(), b"")

    def _squeue(self, arguments: list[str], stdin: bytes) -> CommandEnd:
        lines = (line_of(number, row) for number, row in self.jobs.items())
        return CommandEnd(0, b"".join(lines), b"")

    def _sacct(self, arguments: list[str], stdin: bytes) -> CommandEnd:
        if self.accounts is None:
            return CommandEnd(1, b"", b"Slurm accounting storage is disabled\n")
        names = _value(arguments, "--name").split(",")
        rows = [(name, state) for name, state in self.accounts.items() if name in names]
        numbers = self.account_numbers
        lines = [f"{name}|{state}|{numbers.get(name, '7')}\n" for name, state in rows]
        return CommandEnd(0, "".join(lines).encode(), b"")

    def _scancel(self, arguments: list[str], stdin: bytes) -> CommandEnd:
        if "--batch" in arguments:
            return CommandEnd(0, b"", b"")
        for number, row in self.jobs.items():
            if str(number) in arguments:
                self.jobs[number] = replace(row, state="CANCELLED")
        return CommandEnd(0, b"", b"")


def line_of(number: int | str, row: Row) -> bytes:
    """A line of ``squeue``."""
    fields = (
        str(number),
        row.name,
        row.state,
        str(row.waiting),
        row.left,
        row.nodes,
        row.reason,
    )
    widths = (width for _, width in COLUMNS)
    return b"".join(f.encode().ljust(w)[:w] for f, w in zip(fields, widths, strict=True)) + b"\n"


def _value(arguments: Sequence[str], name: str) -> str:
    begin = f"{name}="
    return next((each.removeprefix(begin) for each in arguments if each.startswith(begin)), "")
