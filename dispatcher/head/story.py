"""The story of an event that the core has refused: its sender, its trial, how to see it again.

Read out of the journal when it is needed: an event that is not refused pays nothing for it.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable

from dispatcher.core.ids import TrialId
from dispatcher.errors import DispatcherError
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.ports import JournalRow, RefusedEvent
from dispatcher.store.journal import SqliteJournal
from dispatcher.store.replay.describing import event_text, trial_text
from dispatcher.store.replay.refused import (
    place_for,
    place_of,
    rows_to_come,
    trial_of,
    write_report,
)

#: Events of the trial that are read for the report, and that the story names.
LAST_IN_REPORT = 20
LAST_IN_STORY = 3


class RefusalStory:
    """Tells and reports refusals of one experiment. Thread: the engine's.

    Args:
        folder: the experiment's.
        mask: hides secrets in reports.
    """

    def __init__(self, folder: ExperimentFolder, mask: Callable[[str], str]) -> None:
        self._folder = folder
        self._mask = mask

    def tell(self, refusal: RefusedEvent) -> str:
        """Write a report of the refusal, and return its story in a few lines. What it cannot read
        or write it says; the refusal itself is what matters."""
        before = rows_to_come(refusal)
        row = refusal.row + len(before) + 1
        lines = [f"from: {place_of(refusal)}; it would have been row {row}"]
        trial = trial_of(refusal)
        last: list[JournalRow] = []
        command = ["bequeath experiment replay", shlex.quote(str(self._folder.path))]
        command.append(f"--until {refusal.row}")
        if trial is not None:
            command.append(f"--trial {trial}")
            lines.append(f"trial {trial}: {trial_text(refusal.state, trial)}")
            last = [one for one in reversed(before) if getattr(one.event, "trial", None) == trial]
            try:
                last.extend(self._rows_of(trial))
            except DispatcherError as error:
                lines.append(f"its rows cannot be read: {error.message}")
            told = [f"{one.number} {event_text(one.event, trial)}" for one in last[:LAST_IN_STORY]]
            lines.append(f"last: {' · '.join(told) or 'nothing'}")
        try:
            path = place_for(self._folder.reports, row)
            whole = [*command, f"--then {path.parent.name}/{path.name}"]
            write_report(path, refusal, last[:LAST_IN_REPORT], " ".join(whole), self._mask)
            command = whole
        except OSError as error:
            lines.append(f"no report of it can be written: {error.strerror}")
        return self._mask("\n  ".join([*lines, " ".join(command)]))

    def _rows_of(self, trial: TrialId) -> list[JournalRow]:
        journal = SqliteJournal.at_this_moment(self._folder.journal)
        try:
            return journal.rows_of(trial, LAST_IN_REPORT)
        finally:
            journal.close()
