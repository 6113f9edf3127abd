"""The experiment of a study: made anew, or the one that lies in a folder."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from dispatcher.errors import UserError
from dispatcher.experiment import ExperimentConfig, build_experiment
from dispatcher.experiment.objectives import mode_of_default
from dispatcher.experiment.snapshot import from_json
from dispatcher.experiments import known_folders
from dispatcher.experiments.creating import create
from dispatcher.folders.experiment_folder import ExperimentFolder, new_id
from dispatcher.folders.names import LED_BY_PROGRAM
from dispatcher.notebook.arguments import mapping
from dispatcher.study.making import alone_in, is_laid_down, is_leftover
from dispatcher.wiring.nesting import refuse_nested
from tuners import space as spaces
from tuners.builtin import fold as fold_builtin
from tuners.by_run import ByRunTuner
from tuners.errors import TunerArgumentError
from tuners.objectives import EXAMPLES, read_objectives

#: The tuner of studies without a search space.
BY_RUN: Final = "tuners.by_run:ByRunTuner"

_DEFAULT_TUNER: Final = "TPE"
_OPEN_AGAIN: Final = "leave it out to go on with the study as it is, or take another folder"


class StudyWish(NamedTuple):
    """Describes the study that a program wants; None: nothing in particular."""

    space: Any = None
    tuner: str | None = None
    tuner_args: Mapping[str, Any] | None = None
    optimize: str | None = None
    objectives: Mapping[str, str] | None = None
    name: str | None = None
    folder: str | Path | None = None
    seed: int | None = None
    assessor: str | None = None
    assessor_args: Mapping[str, Any] | None = None


def open_or_create(wish: StudyWish) -> tuple[ExperimentFolder, ExperimentConfig, bool]:
    """Find the study in the folder that was named, or make one.

    Returns:
        Its folder, its file, and whether it was made.

    Raises:
        UserError: the wish contradicts what is there, or is no experiment.
    """
    refuse_nested()
    folder = _folder(wish.folder)
    try:
        return _opened(wish, folder)
    except OSError as error:
        raise UserError(
            f"cannot be the folder of a study: {error.strerror or error}",
            hint="name another one",
            where=str(folder),
        ) from error


def _folder(given: object) -> Path | None:
    """Return the folder that was named. Raises ``UserError``."""
    if given is None:
        return None
    text = os.fspath(given) if isinstance(given, str | os.PathLike) else None
    if not isinstance(text, str) or not text or "\0" in text:
        raise UserError(
            f"no folder can be {given!r}", hint="write, for example, folder='runs/first'"
        )
    try:
        return Path(text).expanduser().absolute()
    except RuntimeError as error:  # a home of nobody
        raise UserError(f"no folder can be {given!r}: {error}") from error


def _opened(
    wish: StudyWish, folder: Path | None
) -> tuple[ExperimentFolder, ExperimentConfig, bool]:
    """See :func:`open_or_create`. Raises ``OSError`` as well."""
    if folder is None:
        config = known_folders.with_default_folder(
            build_experiment(_keys(wish, folder), our_keys=True)
        )
        return _made(config, new_id(config.experiment_name))
    place = ExperimentFolder(folder)
    new = None if is_laid_down(place) else build_experiment(_keys(wish, folder), our_keys=True)
    with alone_in(folder.parent):
        if new is not None and not is_laid_down(place):
            return _made(new, _ident(place), exist_ok=True)
        config = from_json(place.read_config(), str(place.config))
        _agree(wish, config, place)
        return place, config, False


def _made(
    config: ExperimentConfig, ident: str, *, exist_ok: bool = False
) -> tuple[ExperimentFolder, ExperimentConfig, bool]:
    path = create(config, ident, exist_ok=exist_ok)
    known_folders.remember(path.parent)
    place = ExperimentFolder(path)
    return place, from_json(place.read_config(), str(place.config)), True


def _ident(place: ExperimentFolder) -> str:
    folder = place.path
    if folder.is_symlink():
        raise UserError(
            "is a link, and no study lies behind it", hint="name a new folder", where=str(folder)
        )
    if folder.exists() and not is_leftover(folder):
        raise UserError("is not empty, and no study", hint="name a new folder", where=str(folder))
    if new_id(folder.name).rpartition("-")[0] != folder.name:
        raise UserError(
            f"a study's folder cannot be called {folder.name!r}",
            hint="take letters, digits, - and _, 40 at most",
            where=str(folder),
        )
    return folder.name


def _keys(wish: StudyWish, folder: Path | None) -> dict[str, Any]:
    seed = secrets.randbelow(1 << 31) if wish.seed is None else wish.seed
    objectives = _objectives(wish)
    mode = wish.optimize or mode_of_default(objectives) or "maximize"
    tuner, args = wish.tuner or _DEFAULT_TUNER, mapping("tuner_args", wish.tuner_args)
    args.pop("objectives", None)
    if not isinstance(tuner, str):
        raise UserError(
            f"a study takes a tuner by its name, not {tuner!r}",
            hint="write e.g. tuner='TPE', tuner_args={'multivariate': True}; a tuner of your own "
            "runs in bq.Experiment",
        )
    keys: dict[str, Any] = {
        "experiment_name": wish.name or (folder.name if folder is not None else "study"),
        "optimize_mode": mode,
        "objectives": objectives,
        "seed": seed,
        "trial_command": LED_BY_PROGRAM,
        "trial_concurrency": 1,
        "trial_retries": 0,
        "max_failed_trials_in_a_row": 0,
        "quarantine_after": 0,
        "on_stall": "wait",
    }
    if folder is not None:
        keys["experiment_working_directory"] = folder.parent
    if wish.space is None:
        by_run: dict[str, Any] = {
            "tuner": tuner,
            "tuner_args": args,
            "optimize_mode": mode,
            "seed": seed,
        }
        if objectives:
            by_run["objectives"] = objectives
        _check_by_run(by_run)
        keys["tuner"] = {"class_name": BY_RUN, "class_args": by_run}
    else:
        keys["search_space"] = wish.space
        keys["tuner"] = {"name": tuner, "class_args": args}
    if wish.assessor is not None:
        given = mapping("assessor_args", wish.assessor_args)
        keys["assessor"] = {"name": wish.assessor, "class_args": given, "keep_result": True}
    return keys


def _objectives(wish: StudyWish) -> dict[str, str]:
    """The objectives in one spelling; they may stand among the tuner's arguments as well."""
    of_tuner = mapping("tuner_args", wish.tuner_args).get("objectives")
    given = of_tuner if wish.objectives is None else wish.objectives
    if given is None:
        return {}
    if wish.objectives is not None and of_tuner is not None:
        raise UserError(
            "objectives are given twice", hint="leave them out of the tuner's arguments"
        )
    try:
        return {one.name: one.text for one in read_objectives(given)}
    except ValueError as error:
        raise UserError(str(error), hint=EXAMPLES) from None


def _check_by_run(arguments: dict[str, Any]) -> None:
    try:
        ByRunTuner(**arguments)
    except TunerArgumentError as error:
        raise UserError(error.message, hint=error.hint) from error


def _agree(wish: StudyWish, config: ExperimentConfig, place: ExperimentFolder) -> None:
    """Refuse what contradicts a study that is there already.

    Raises:
        UserError: names the first contradiction.
    """
    where = str(place.path)
    if config.trial_command != LED_BY_PROGRAM:
        raise UserError(
            "is an experiment with processes of its own, and no study",
            hint="open it with bq.Experiment.open, or take another folder",
            where=where,
        )
    by_run = config.tuner.name is None
    args = config.tuner.class_args
    there = {
        "tuner": args.get("tuner") if by_run else config.tuner.name,
        "optimize": config.optimize_mode,
        "name": config.experiment_name,
        "seed": config.seed,
    }
    for key, value in there.items():
        wanted = getattr(wish, key)
        spelt = fold_builtin if key == "tuner" else str.lower
        if wanted is not None and spelt(str(wanted)) != spelt(str(value)):
            text = f"this study was made with {key}={value!r}, and is opened with {wanted!r}"
            raise UserError(text, hint=_OPEN_AGAIN, where=where)
    _agree_on_arguments(wish, config, where)
    wanted = _objectives(wish)
    if wanted and wanted != config.objectives:
        text = f"this study was made with objectives={config.objectives}, and is opened with"
        raise UserError(f"{text} {wanted}", hint=_OPEN_AGAIN, where=where)
    if wish.space is None:
        return
    if by_run or spaces.as_json(wish.space) != config.search_space:
        what = "without a search space" if by_run else f"with the space {config.search_space}"
        raise UserError(f"this study was made {what}", hint=_OPEN_AGAIN, where=where)


def _agree_on_arguments(wish: StudyWish, config: ExperimentConfig, where: str) -> None:
    """Refuse an assessor, or arguments, that are others than those of the study.

    Raises:
        UserError: names the first contradiction.
    """
    args = config.tuner.class_args
    assessor = config.assessor
    there = {
        "tuner_args": args.get("tuner_args") if config.tuner.name is None else args,
        "assessor": assessor and assessor.name,
        "assessor_args": assessor and assessor.class_args,
    }
    wanted = {key: getattr(wish, key) for key in there}
    for key, value in wanted.items():
        if key.endswith("args"):
            mapping(key, value)
        if value is not None and _plain(value) != _plain(there[key] or {}):
            text = f"this study was made with {key}={there[key]!r}, and is opened with {value!r}"
            raise UserError(text, hint=_OPEN_AGAIN, where=where)


def _plain(value: Any) -> Any:
    """Return a name or arguments in one spelling; objectives have a look of their own."""
    if isinstance(value, str):
        return fold_builtin(value)
    if isinstance(value, Mapping):
        value = {key: each for key, each in value.items() if key != "objectives"}
    try:
        return json.loads(json.dumps(value))
    except (TypeError, ValueError):
        return value
