"""Runs of Weights & Biases: one a trial, written whole when the trial has ended.

Offline runs of one id are not joined when they are uploaded: the later one takes the place of the
one before. So no run is begun that cannot be finished at once, and what a crash has left of one is
removed before it is written again.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from dispatcher.errors import PassingBackendError, PermanentBackendError
from dispatcher.sinks.naming import flat_numbers, flat_parameters, shown_text
from dispatcher.sinks.protocol import Flushed, Json, Point, Surroundings, TrialEnd, TrialRun

#: Seconds for the tracker's own process to come up, and for a run to begin.
_BEGIN_S: Final = 90.0

#: Characters of a tag, of notes, and of a run's id, as the tracker takes them.
_MOST_TAG, _MOST_NOTES, _MOST_ID = 64, 1000, 120

#: What a run would collect of this machine, which is not where the trial ran.
_SETTINGS: Final = {
    "console": "off",
    "save_code": False,
    "silent": True,
    "quiet": True,
    "disable_git": True,
    "disable_code": True,
    "disable_job_creation": True,
    "init_timeout": _BEGIN_S,
    "x_disable_stats": True,
    "x_disable_meta": True,
    "x_disable_machine_info": True,
    "x_save_requirements": False,
}


def package() -> Any:
    """The package ``wandb``. Raises ``PermanentBackendError``."""
    try:
        return importlib.import_module("wandb")
    except ImportError as error:
        raise PermanentBackendError(
            f"Weights & Biases needs its package: {error}", hint="pip install 'bequeath[wandb]'"
        ) from error


class WandbSink:
    """Writes runs below one folder, and uploads them if it is to.

    Args:
        folder: for the runs' files; made if it is missing.
        project: the project's name there.
        entity: the user or team there; None: the usual one.
        mode: ``offline`` or ``online``.
        surroundings: the experiment.
    """

    def __init__(
        self,
        folder: Path,
        project: str,
        entity: str | None,
        mode: str,
        surroundings: Surroundings,
    ) -> None:
        self._folder = folder
        self._project = project
        self._entity = entity
        self._mode = mode
        self._experiment = surroundings.experiment
        self._api_key = surroundings.secrets.get("api_key")
        self._ident = re.sub(r"[^\w-]", "-", surroundings.experiment.id)[:_MOST_ID]
        self._wandb = package()
        self._rows: dict[int, list[tuple[Point, dict[str, float]]]] = {}
        self._ended: list[str] = []

    def begin(self, run: TrialRun, place: Json) -> bool:
        """Remove what is left of it; nothing is written before its end."""
        self._rows[run.trial] = []
        with _mended():
            self._folder.mkdir(parents=True, exist_ok=True)
            self._remove(self._id_of(run.trial))
        return True

    def _id_of(self, trial: int) -> str:
        return f"{self._ident}-{trial}"

    def _remove(self, ident: str) -> None:
        for folder in self._folders(ident):
            shutil.rmtree(folder)

    def _folders(self, ident: str) -> list[Path]:
        """The folders that the package has made for a run, whatever its time."""
        pattern = re.compile(rf"(offline-)?run-[0-9_]+-{re.escape(ident)}")
        below = self._folder / "wandb"
        found = below.iterdir() if below.is_dir() else ()
        return [path for path in found if pattern.fullmatch(path.name) and not path.is_symlink()]

    def points(self, run: TrialRun, points: Sequence[Point]) -> None:
        """Hold points until the end."""
        self._rows[run.trial] += [(p, flat_numbers(p.value, p.number)) for p in points]

    def end(self, run: TrialRun, end: TrialEnd) -> None:
        """Write the run."""
        rows = self._rows.pop(run.trial)
        ident = self._id_of(run.trial)
        with _mended():
            there = self._begun(run, end, ident)
            for point, numbers in rows:
                there.log({**numbers, "_timestamp": point.at}, step=point.seq)
            finals = flat_numbers(end.result, end.value)
            named = {("final" if k == "default" else f"final/{k}"): v for k, v in finals.items()}
            there.summary.update({**named, "outcome": end.outcome, "ended_at": end.at})
            there.finish(exit_code=0 if end.success else 1)
        self._ended.append(ident)

    def _begun(self, run: TrialRun, end: TrialEnd, ident: str) -> Any:
        known = self._wandb.Settings.model_fields  # others than these are refused
        settings = {key: value for key, value in _SETTINGS.items() if key in known}
        if self._api_key is not None:
            settings["api_key"] = self._api_key
        return self._wandb.init(
            project=self._project,
            entity=self._entity,
            id=ident,
            name=f"trial-{run.trial:05d}",
            group=self._ident,
            job_type="trial",
            notes=shown_text(end.error, _MOST_NOTES) or None,
            tags=[end.outcome[:_MOST_TAG]] if end.outcome else None,
            config=_config(run),
            dir=str(self._folder),
            mode=self._mode,
            resume="allow" if self._mode == "online" else None,
            reinit="create_new",
            settings=self._wandb.Settings(**settings),
        )

    def drop(self, trials: Sequence[int]) -> None:
        """Remove the folders of runs."""
        with _mended():
            for trial in trials:
                self._remove(self._id_of(trial))

    def flush(self) -> Flushed:
        """Have the runs that have ended on disk."""
        with _mended():
            for ident in self._ended:
                for folder in self._folders(ident):
                    _sync(folder)
        self._ended = []
        return Flushed({}, {})

    def close(self, status: str) -> None:
        """End the package's own process, unless it was never there."""
        with contextlib.suppress(Exception):  # nothing of ours waits in it
            self._wandb.teardown()


def _config(run: TrialRun) -> Mapping[str, Any]:
    config: dict[str, Any] = dict(flat_parameters(run.parameters))
    own = {"generation": run.generation, "attempt": run.attempt, "parent": run.parent}
    for name, value in own.items():
        if value is not None:
            config[f"bequeath/{name}" if name in config else name] = value
    return config


def _sync(folder: Path) -> None:
    for path in folder.glob("*.wandb"):
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def _mended() -> Iterator[None]:
    """Whatever the package raises, as an error that may pass: nobody knows all of its errors."""
    try:
        yield
    except Exception as error:
        text = f"Weights & Biases does not take a run: {type(error).__name__}: {error}"
        raise PassingBackendError(text) from error
