"""The experiment that a user means: by id, its beginning, name or folder, or by no name.

Only experiments of ours are found (:mod:`dispatcher.folders.ownership`), except by their path to
be looked at.
"""

from __future__ import annotations

import contextlib
import os
from enum import Enum
from pathlib import Path

from dispatcher import queries
from dispatcher.errors import ExperimentNotFound, PassingBackendError, UserError
from dispatcher.experiments.known_folders import known_folders, own_home
from dispatcher.folders.ownership import demand_ours, is_id, is_ours
from dispatcher.folders.status import is_led
from dispatcher.folders.studies import no_head
from dispatcher.queries.experiments import HOME_VARIABLE, foreign_experiments

_SHOWN = 5

#: The hint where no experiment is named, and there is none in the user's own home.
NAME_OTHERS = f"name one that does not lie below {HOME_VARIABLE}: `experiment list --all`"


class Purpose(Enum):
    """The purposes of a look-up: which experiments are meant, and which guess is good."""

    READ = "read"  # somebody else's as well, by its path
    USE = "use"  # one of ours
    CHANGE = "change"  # the newest one is no good guess
    RUNNING = "running"  # it must have a head
    RESUME = "resume"  # it must not be over
    DAMAGED = "damaged"  # its store may be unreadable


def find(word: str | None, base: Path | None, purpose: Purpose = Purpose.READ) -> Path:
    """Find the folder of the experiment that ``word`` means; without one that of the only one that
    runs, else of the newest. Without a name only the user's own home is searched, if there is one.

    Args:
        word: typed by the user: id, its beginning, name or folder; None if nothing was typed.
        base: look below this folder only.
        purpose: what it is looked up for.

    Raises:
        ExperimentNotFound: there is none.
        NotOurs: it is somebody else's.
        PassingBackendError: it does not run, and must.
        UserError: there are several.
        DispatcherError: its store cannot be read.
    """
    if word is None:
        folder = _guessed(base, purpose)
    else:
        folder = _named(word, base, others=purpose is Purpose.READ)
        if purpose is Purpose.DAMAGED:
            return folder
    with queries.ExperimentReader.open(folder) as reader:
        if purpose is Purpose.RUNNING and not is_led(folder):
            status = queries.experiment_summary(reader).status
            if status is queries.ExperimentStatus.COMPLETED:
                instead = f"it is completed: see bequeath status {folder.name}"
                raise PassingBackendError(f"experiment {folder.name} is not running", hint=instead)
            raise no_head(folder)
    return folder


def _guessed(base: Path | None, purpose: Purpose) -> Path:
    """Return the folder of the experiment that is meant where none is named."""
    if purpose is Purpose.RESUME:
        return _resumable(base)
    running = running_folders(base)
    if len(running) > 1:
        raise _say_which([folder.name for folder in running], "experiments run")
    if running:
        return running[0]
    if purpose is Purpose.RUNNING:
        raise PassingBackendError(
            "no experiment is running",
            hint="'bequeath experiment list' shows those that are kept; 'bequeath run FILE' "
            "starts one",
        )
    kept = [one for folder in _bases(base) for one in queries.experiment_folders(folder)]
    if not kept:
        raise _nothing(base)
    if len(kept) > 1:  # of one alone the age is of no interest, and its store may be large
        kept.sort(key=lambda one: (-(queries.created_at(one) or 0.0), one.name))
    if purpose is Purpose.CHANGE and len(kept) > 1:
        raise _say_which([one.name for one in kept], "experiments are kept and none runs")
    return kept[0]


def _resumable(base: Path | None) -> Path:
    """Return the folder of the newest experiment that is not over and does not run."""
    kept = all_experiments(base)
    over = queries.ExperimentStatus.COMPLETED
    ready = [one for one in kept if one.status is not over and not is_led(Path(one.folder))]
    if not ready:
        raise ExperimentNotFound(
            "there is no experiment to resume" if kept else "there are no experiments yet",
            hint="name a completed one to see that it is over" if kept else "bequeath run FILE",
        )
    return Path(ready[0].folder)


def all_experiments(
    base: Path | None, *, everywhere: bool = False
) -> list[queries.ExperimentListing]:
    """List all experiments, the newest first: below the base, else in the user's own home, or in
    all folders that were ever used if there is no such home, or with ``everywhere``."""
    bases = _bases(base, everywhere=everywhere)
    found = [one for folder in bases for one in queries.experiments(folder)]
    return sorted(found, key=lambda one: (-(one.created_at or 0.0), one.id))


def experiments_of_others(base: Path | None, *, everywhere: bool = False) -> int:
    """Count the experiments beside ours that are somebody else's."""
    bases = _bases(base, everywhere=everywhere)
    return sum(foreign_experiments(folder) for folder in bases)


def running_folders(base: Path | None) -> list[Path]:
    """List folders of experiments that a head leads now; no store is opened."""
    found: list[Path] = []
    for folder in _bases(base):
        with contextlib.suppress(OSError):
            inside = [one for one in sorted(folder.iterdir()) if one.is_dir()]
            found += [one for one in inside if is_ours(one) and is_led(one)]
    return found


def completions(incomplete: str) -> list[str]:
    """List the ids of experiments of ours that begin so, for a shell. Raises nothing.

    A shell may take an offer as a part of its command line, so only ids are offered.
    """
    names: list[str] = []
    for folder in known_folders():
        with contextlib.suppress(OSError):
            inside = [one for one in sorted(folder.iterdir()) if one.name.startswith(incomplete)]
            names += [one.name for one in inside if is_id(one.name) and _is_kept_here(one)]
    return names


def _is_kept_here(folder: Path) -> bool:
    return folder.is_dir() and is_ours(folder)


def _named(word: str, base: Path | None, *, others: bool = False) -> Path:
    """Find it in the first folder that knows the name, the user's own home before all others; if
    none does, the error is that of the home, or the best one."""
    if not word:  # an empty variable of a script, and no wish for the newest
        raise UserError(
            "an empty name is no experiment's",
            hint="give its id, its name or its folder; leave the name out where it is not needed",
        )
    if os.sep in word or word in (".", ".."):  # a path, whatever else has that name
        folder = queries.find_experiment(word, base)
        if not others:
            demand_ours(folder)
        return folder
    error: ExperimentNotFound | None = None
    for folder in [base] if base is not None else _own_first():
        try:
            return queries.find_experiment(word, folder)
        except ExperimentNotFound as one:
            if error is None:
                error = one
            elif _is_near(one) and not _is_near(error):
                error = _near_elsewhere(error, one) if own_home() is not None else one
    raise error or _nothing(base)


def _own_first() -> list[Path]:
    """List the folders in which a name is looked up: the user's own home, if there is one, before
    all others."""
    own = own_home()
    return [*dict.fromkeys([own, *known_folders()])] if own is not None else known_folders()


def _is_near(error: ExperimentNotFound) -> bool:
    return error.hint.startswith("did you mean")


def _near_elsewhere(error: ExperimentNotFound, near: ExperimentNotFound) -> ExperimentNotFound:
    """Return the error of the user's own home, with names that are alike in another folder."""
    hint = f"{near.hint.removesuffix('?')}, below {near.where}?"
    return ExperimentNotFound(error.message, hint=hint, where=error.where)


def _bases(base: Path | None, *, everywhere: bool = False) -> list[Path]:
    """List the folders to search without a name."""
    if base is not None:
        return [base]
    own = own_home()
    return known_folders() if everywhere or own is None else [own]


def _nothing(base: Path | None) -> ExperimentNotFound:
    own = own_home() if base is None else None
    others = [folder for folder in known_folders() if folder != own] if own else []
    return ExperimentNotFound(
        "there are no experiments yet",
        hint=NAME_OTHERS if others else "start one with: bequeath run FILE",
        where=str(base or (own if others else "")),
    )


def _say_which(ids: list[str], what: str) -> UserError:
    more = f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
    return UserError(
        f"{len(ids)} {what}", hint=f"name one of them: {', '.join(ids[:_SHOWN])}{more}"
    )
