"""All experiments of ours below a folder, and the one that a user means."""

from __future__ import annotations

import difflib
import os
from pathlib import Path
from typing import Final

from dispatcher.errors import ExperimentNotFound, UserError
from dispatcher.folders.names import CONFIG_NAME, STORE_NAME
from dispatcher.folders.ownership import is_ours
from dispatcher.queries.summary import ExperimentListing, listing
from dispatcher.text_width import some_of

#: Names the folder below which experiments are looked for.
HOME_VARIABLE: Final = "BEQUEATH_HOME"
_DEFAULT: Final = "~/bequeath-experiments"

_NAMES_SHOWN: Final = 5


def base_folder() -> Path:
    """Return the folder that is searched: BEQUEATH_HOME, else the experiment file's default."""
    return Path(os.environ.get(HOME_VARIABLE) or _DEFAULT).expanduser()


def experiments(base: Path | None = None) -> list[ExperimentListing]:
    """List all experiments of ours below a folder, the newest first. The listing of a damaged one
    holds its problem."""
    found = [listing(folder) for folder in _folders(base or base_folder())[0]]
    return sorted(found, key=lambda one: (-(one.created_at or 0.0), one.id))


def experiment_folders(base: Path) -> list[Path]:
    """List the folders of experiments of ours below a folder; no store is opened."""
    return _folders(base)[0]


def find_experiment(word: str, base: Path | None = None) -> Path:
    """Find the folder of the experiment that a user means.

    Args:
        word: its folder, which may be somebody else's; or its id, a beginning that only its id
            has, or its name, if it is ours.
        base: the folder to search; by default :func:`base_folder`.

    Raises:
        ExperimentNotFound: there is none; the hint names those that are spelt alike.
        UserError: there are several; the hint names them.
    """
    path = Path(word).expanduser()
    if os.sep in word or word in (".", ".."):
        if _is_experiment(path):
            return path.resolve()
        raise ExperimentNotFound(
            "there is no experiment in this folder",
            hint="an experiment's folder holds experiment.json and journal.sqlite",
            where=str(path),
        )
    base = base or base_folder()
    folders, foreign = _folders(base)
    by_id = {folder.name: folder for folder in folders}
    if word in by_id:
        return by_id[word]
    alike = [folder for name, folder in by_id.items() if word and name.startswith(word)]
    if len(alike) == 1:
        return alike[0]
    listed = [listing(folder) for folder in folders]
    named = [one for one in listed if one.name == word]
    if len(named) == 1:
        return by_id[named[0].id]
    if named or alike:
        ids = [one.id for one in named] or sorted(folder.name for folder in alike)
        raise UserError(
            f"{len(ids)} experiments go by {word!r}",
            hint=f"name one of them: {_some(ids)}",
            where=str(base),
        )
    raise _not_found(word, base, listed, foreign)


def newest_experiment(base: Path | None = None) -> Path:
    """Find the folder of the experiment that was created last. Raises ``ExperimentNotFound``."""
    base = base or base_folder()
    found = [one for one in experiments(base) if not one.problem]
    if not found:
        raise _not_found("", base, [], 0)
    return Path(found[0].folder)


def foreign_experiments(base: Path) -> int:
    """Count somebody else's experiments below a folder; they are found by path only."""
    return _folders(base)[1]


def _not_found(
    word: str, base: Path, listed: list[ExperimentListing], foreign: int
) -> ExperimentNotFound:
    names = {name for one in listed for name in (one.id, one.name)}
    if foreign and not difflib.get_close_matches(word, sorted(names), n=1, cutoff=0.5):
        return ExperimentNotFound(
            f"no experiment of ours goes by {word!r}",
            hint=f"{foreign} in there belong to somebody else: name one by its path to look at it",
            where=str(base),
        )
    if not names:
        return ExperimentNotFound(
            "there are no experiments yet",
            hint=f"start one with 'bequeath run FILE', or set {HOME_VARIABLE} to where they are",
            where=str(base),
        )
    near = difflib.get_close_matches(word, sorted(names), n=_NAMES_SHOWN, cutoff=0.5)
    return ExperimentNotFound(
        f"no experiment goes by {word!r}",
        hint=f"did you mean {_some(near)}?" if near else f"there are {_some(sorted(names))}",
        where=str(base),
    )


def _some(names: list[str]) -> str:
    return some_of(names, _NAMES_SHOWN)


def _folders(base: Path) -> tuple[list[Path], int]:
    """List folders of experiments of ours, and count those that are somebody else's."""
    try:
        inside = sorted(base.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return [], 0
    except OSError as error:
        raise UserError(
            f"the experiments cannot be listed: {error.strerror or error}", where=str(base)
        ) from error
    found = [folder for folder in inside if _is_experiment(folder)]
    ours = [folder for folder in found if is_ours(folder)]
    return ours, len(found) - len(ours)


def _is_experiment(folder: Path) -> bool:
    try:
        return (folder / STORE_NAME).is_file() or (folder / CONFIG_NAME).is_file()
    except OSError:  # a folder that is closed to us, on Python < 3.14
        return False
