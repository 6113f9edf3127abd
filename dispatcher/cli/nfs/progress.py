"""Progress of a cluster's set-up: a live table on a terminal, lines in a pipe."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dispatcher.safe_text import safe_text
from dispatcher.terminal.console import Column, console, is_terminal, note, print_table, rich_table
from dispatcher.terminal.formatting import duration

if TYPE_CHECKING:
    from nfs_setup.cluster.plan import Outcome

_COLUMNS = (
    Column("host"),
    Column("role"),
    Column("state"),
    Column("took", right=True),
    Column("", shrink=True),
)

_STYLES = {
    "looking": "cyan",
    "working": "cyan",
    "set up": "green",
    "as it should be": "green",
    "undone": "green",
    "failed": "red",
    "unknown": "red",
    "left out": "yellow",
}


class MachineProgress:
    """The newest outcome of each machine.

    Args:
        hosts: names and roles, in the order of the table.
    """

    def __init__(self, hosts: Sequence[tuple[str, str]]) -> None:
        self._hosts = hosts
        self._outcomes: dict[str, Outcome] = {}
        self._since: dict[str, float] = {}
        self._noted: dict[str, str] = {}
        self._moving = is_terminal(sys.stderr)  # where progress goes

    def tell(self, outcome: Outcome) -> None:
        """Record a machine's outcome; in a pipe, print it once it is final."""
        self._outcomes[outcome.name] = outcome
        self._since[outcome.name] = time.monotonic()
        if self._moving or not outcome.over or self._noted.get(outcome.name) == outcome.word:
            return
        self._noted[outcome.name] = outcome.word
        summary = _summary(outcome)
        note(f"{outcome.name}: {outcome.word}{f': {safe_text(summary)}' if summary else ''}")

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the table on a terminal, until the end of the context."""
        if not self._moving:
            yield
            return
        from rich.live import Live

        with Live(
            console=console(stderr=True),
            get_renderable=self.picture,
            refresh_per_second=4,
            transient=True,
        ):
            yield

    def picture(self) -> Any:
        """Return the table as it is now, for rich."""
        rows = [self._row(name, role) for name, role in self._hosts]
        return rich_table(_COLUMNS, rows, console(stderr=True).width)

    def _row(self, name: str, role: str) -> list[Any]:
        from rich.text import Text

        outcome = self._outcomes.get(name)
        if outcome is None:
            return [safe_text(name), role, Text("waiting", "dim"), "", ""]
        seconds = outcome.seconds
        if outcome.state in ("looking", "working"):
            seconds += time.monotonic() - self._since[name]
        state = Text(outcome.word, _STYLES.get(outcome.word, "dim"))
        return [safe_text(name), role, state, duration(seconds), safe_text(_summary(outcome))]


def print_outcomes(outcomes: Sequence[Outcome]) -> None:
    """Print the table of final outcomes, as the command's answer."""
    print_table(
        _COLUMNS,
        [
            (one.name, one.order.member.role, one.word, duration(one.seconds), _summary(one))
            for one in outcomes
        ],
    )


def _summary(outcome: Outcome) -> str:
    """Return in a few words what was done, or why it was not."""
    if outcome.error is not None:
        where = f"{outcome.error.where}: " if outcome.error.where else ""
        return " ".join(f"{where}{outcome.error.message}".split())
    if outcome.report is None or outcome.report.verb == "status":
        return ""
    changes = sum(line.state in ("done", "planned", "undone") for line in outcome.report.steps)
    kept = sum(line.state == "kept" for line in outcome.report.steps)
    parts = [f"{changes} change{'s' * (changes != 1)}"] if changes else []
    parts += [f"{kept} kept"] if kept else []
    return ", ".join(parts)
