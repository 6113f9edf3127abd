"""Taking the lead of an experiment: alone, or in the place of another head, fenced by its epoch."""

from __future__ import annotations

from pathlib import Path

from dispatcher.errors import DispatcherError, StoreBusy
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.store.journal import SqliteJournal
from dispatcher.store.leadership import Leadership, claimed_epoch

#: Seconds that a head which leads gets to answer whether it steps down.
ANSWER_S = 3.0


def take_the_lead(folder: ExperimentFolder, *, take_over: bool) -> Leadership:
    """Lead this experiment from now on.

    Args:
        folder: the experiment's.
        take_over: whether to take the lead from a head that has it.

    Raises:
        ExperimentBusy: another head leads, and we do not take over, or another one just did.
        StoreError: the folder cannot be written.
    """
    last_epoch = claimed_epoch(folder.journal)
    if not take_over:
        return Leadership.acquire(folder.path, last_epoch=last_epoch)
    return Leadership.take_over(
        folder.path, last_epoch=last_epoch, step_down=lambda: _steps_down(folder.path)
    )


def _steps_down(folder: Path) -> bool:
    """Whether the head that leads agrees to end and to leave its trials to us."""
    from dispatcher.control.client import HeadClient  # seldom needed

    try:
        with HeadClient(folder, timeout_s=ANSWER_S) as head:
            head.ask("step_down")
    except DispatcherError:
        return False  # it does not answer, or does not know the request
    return True


def open_journal(folder: ExperimentFolder, lead: Leadership) -> SqliteJournal:
    """Open the journal under our epoch. From here on no older head can commit: what is replayed
    now is all there is.

    Raises:
        Superseded: another head has taken over from us already.
        StoreError: it cannot be opened.
    """
    try:
        return SqliteJournal.open(folder.journal, epoch=lead.epoch)
    except StoreBusy:
        # The head before was stopped in the middle of a commit.
        if not lead.end_predecessor():
            raise
        return SqliteJournal.open(folder.journal, epoch=lead.epoch)
