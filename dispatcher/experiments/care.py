"""Care of an experiment's store and folder: compared with its journal, folded, deleted.

No head begins meanwhile. Only what is wrong with the store is looked for, so that an
experiment of which nothing else can be read has these as well.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from pathlib import Path
from typing import NamedTuple

from dispatcher.errors import StoreError, UserError
from dispatcher.experiments.lead_elsewhere import demand_known_lead
from dispatcher.folders.experiment_folder import ExperimentFolder, run_folder
from dispatcher.folders.names import CHANGE_LOCK_NAME, LOCK_NAME
from dispatcher.folders.status import is_led
from dispatcher.store.journal import SqliteJournal
from dispatcher.store.leadership import Leadership, heads_locked_out
from dispatcher.store.replay.folding import compact as compact_store
from dispatcher.store.verify import Verification
from dispatcher.store.verify import rebuild as rebuild_tables
from dispatcher.store.verify import verify as verify_store
from trial_runtime.retry import Retry

#: So long (seconds) a folder is deleted again in which something appears or vanishes meanwhile, and
#: what is said of such a folder.
WRITTEN_S = 15.0
_CHANGES = frozenset({errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT})


class Compacted(NamedTuple):
    """The outcome of a compaction: whether there was anything to fold, and the store's sizes."""

    done: bool
    bytes_before: int
    bytes_after: int


def verify(place: ExperimentFolder, *, rebuild: bool = False) -> Verification:
    """Replay the journal and compare it with the tables, which may be made again from it before.

    Raises:
        ExperimentBusy: a head leads it.
        UserError: nobody can tell from here whether one does.
    """
    demand_known_lead(place)
    with Leadership.keep_heads_out(place.path):
        if rebuild:
            rebuild_tables(place.journal)
        return verify_store(place.journal)


def compact(place: ExperimentFolder) -> Compacted:
    """Fold what is past of the journal into one state.

    Raises:
        ExperimentBusy: a head leads it.
        UserError: nobody can tell from here whether one does.
    """
    demand_known_lead(place)
    before = place.journal.stat().st_size
    with Leadership.keep_heads_out(place.path):
        journal = SqliteJournal.open(place.journal)
        try:
            done = compact_store(journal)
        finally:
            journal.close()
    return Compacted(done, before, place.journal.stat().st_size)


def refuse_running(place: ExperimentFolder) -> None:
    """Raise ``UserError`` if a head leads it, or may do so on another machine: that is no time to
    delete it."""
    if is_led(place.path):
        raise UserError(f"{place.id} is running", hint=f"end it first: bequeath stop {place.id}")
    demand_known_lead(place)


def delete(place: ExperimentFolder) -> None:
    """Delete the folder with all that is in it, and the one with its sockets.

    Raises:
        UserError: it runs, or the folder cannot be deleted.
        ExperimentBusy: a head has begun just now.
    """
    refuse_running(place)
    sockets = run_folder(place.path)  # read first: the experiment's folder may name it
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(StoreError):  # where no lock can be had, no head begins either
            stack.enter_context(heads_locked_out(place.path))
        try:
            _delete_all(place.path)
        except OSError as error:
            fault = f"cannot be deleted: {error.strerror}"
            raise UserError(fault, where=str(place.path)) from error
    shutil.rmtree(sockets, ignore_errors=True)


def _delete_all(folder: Path) -> None:
    """Delete the folder, again and again while agents that were just ended still write there."""
    tries = Retry(0.05, 1.0)
    while folder.exists():
        try:
            _delete_but(folder, {LOCK_NAME, CHANGE_LOCK_NAME})
            shutil.rmtree(folder)
        except OSError as error:
            if error.errno not in _CHANGES or not tries.pause(WRITTEN_S):
                raise


def _delete_but(folder: Path, kept: set[str]) -> None:
    """Delete all else: a head that cannot find the locks would make new ones, and begin."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name in kept:
                continue
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path)
            else:
                os.unlink(entry.path)
