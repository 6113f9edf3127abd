"""Experiments from Python: a notebook or a script does what the command line does.

The tuner, the trials and the head run in processes of their own, so an experiment goes on
when a notebook's kernel is restarted, and nothing it does can stop the notebook.
"""

from __future__ import annotations

import contextlib
import math
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import psutil

from dispatcher import known_folders, queries
from dispatcher.background import kill_experiment, start_in_background
from dispatcher.control.client import HeadClient, RunFile
from dispatcher.errors import PassingBackendError, UserError
from dispatcher.experiment import ExperimentConfig, build_experiment, load_experiment
from dispatcher.experiment.snapshot import from_json, to_json
from dispatcher.folders import ExperimentFolder
from dispatcher.function_source import (
    Definition,
    check_stands_alone,
    import_folder,
    is_importable,
    module_source,
)
from dispatcher.queries.status import is_led

if TYPE_CHECKING:
    from dispatcher.queries import ExperimentSummary, Lineage, TrialDetail, TrialSummary

__all__ = ["Experiment", "PlotFile"]

#: Seconds between looks at which head leads, while one runs and while there seems to be none.
_LOOK_EVERY_S = 1.0
_BETWEEN_HEADS_S = 0.05

_TRIAL_MODULE = "bequeath_trial"
_TUNER_FILE = "bequeath_tuner.py"

PlotKind = Literal["progress", "parallel", "lineage"]


class PlotFile:
    """A picture on disk, which a notebook shows by itself."""

    def __init__(self, path: Path) -> None:
        self.path = path  #: where the PNG file lies

    def __repr__(self) -> str:
        return f"<picture {self.path}>"

    def _repr_png_(self) -> bytes:
        return self.path.read_bytes()


class Experiment:
    """One experiment: what it is before it starts, and the hand on it afterwards.

    Args:
        config: an experiment file's path, its content as a mapping, or a configuration; not
            needed when everything is given by keywords.
        trial: a function, or ``"module:function"``. It is called with its parameters (or
            without, and asks for them by ``trial_runtime.get_parameters``) in another
            process; what it returns is its final result. A function of a notebook is written
            out as source, with the globals it uses.
        tuner: a built-in tuner's name, or a tuner class; its arguments go into
            ``tuner_args``.
        tuner_args: keyword arguments of the tuner's constructor, any JSON values.
        **settings: keys of an experiment file in snake_case, such as ``max_trial_number``;
            they win over ``config``. ``bequeath config reference`` prints them all.

    Raises:
        ExperimentFileErrors: what is wrong with the settings, all of it.
        UserError: a function or class that another process cannot have.

    Example:
        >>> from dispatcher import Experiment
        >>> def trial(parameters):
        ...     return (parameters["x"] - 0.3) ** 2
        >>> experiment = Experiment(
        ...     trial=trial,
        ...     tuner="Random",
        ...     search_space={"x": {"_type": "uniform", "_value": [0, 1]}},
        ...     trial_concurrency=2,
        ...     max_trial_number=20,
        ...     optimize_mode="minimize",
        ... )
        >>> experiment
        <Experiment 'experiment', not started>
        >>> experiment.run()  # doctest: +SKIP
        >>> experiment.best().parameters  # doctest: +SKIP
        {'x': 0.2987}

    Methods may be called from any thread, one at a time. Those that look need no running head;
    they raise ``UserError`` before the experiment was started. Those that change something while
    it runs raise ``PassingBackendError`` if it does not.
    """

    def __init__(
        self,
        config: ExperimentConfig | Mapping[str, Any] | str | Path | None = None,
        *,
        trial: Callable[..., Any] | str | None = None,
        tuner: type | str | None = None,
        tuner_args: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        self._folder: Path | None = None
        self._staged: dict[str, str] = {}  # files that create() puts into the experiment
        given = {"trial": trial, "tuner": tuner, "tuner_args": tuner_args, **settings}
        if isinstance(config, ExperimentConfig | str | Path):
            extra = [name for name, value in given.items() if value is not None]
            if extra:
                raise UserError(
                    f"{extra[0]!r} cannot be given beside a whole experiment file",
                    hint="give the settings as a mapping or as keywords, or change the file",
                )
            if not isinstance(config, ExperimentConfig):
                config = known_folders.housed(load_experiment(config))
            self.config = config
            return
        values: dict[str, Any] = {**(config or {}), **settings}
        with tempfile.TemporaryDirectory(prefix="bequeath-") as stage:
            if trial is not None:
                values |= self._trial_settings(trial, Path(stage), values)
            if tuner is not None:
                values["tuner"] = self._tuner_settings(tuner, tuner_args or {}, Path(stage))
            for name, text in self._staged.items():
                (Path(stage) / name).write_text(text, encoding="utf-8")
            self.config = known_folders.housed(build_experiment(values))

    @classmethod
    def open(cls, experiment: str | Path) -> Experiment:
        """An experiment that exists already, running or not: by folder, id, beginning or name.

        Raises:
            ExperimentNotFound: there is none.
            UserError: there are several.
        """
        from dispatcher.cli.find import find_one

        folder = find_one(str(experiment), None).folder
        path = ExperimentFolder(folder).config
        opened = cls(from_json(path.read_text(encoding="utf-8"), str(path)))
        opened._folder = folder
        return opened

    # -- before it starts -----------------------------------------------------------------

    def _trial_settings(
        self, trial: Callable[..., Any] | str, stage: Path, values: Mapping[str, Any]
    ) -> dict[str, Any]:
        if isinstance(trial, str):
            return {"trial_function": trial}
        function = check_stands_alone(trial, "trial")
        if is_importable(function):
            name = f"{function.__module__}:{function.__qualname__}"
            if "trial_code_directory" in values or "trialCodeDirectory" in values:
                return {"trial_function": name}
            return {
                "trial_function": name,
                "trial_code_directory": str(import_folder(function.__module__)),
            }
        here = str(Path(str(values.get("trial_code_directory", "."))).absolute())
        # Relative paths and neighbours mean in the trial what they mean in the notebook.
        preamble = f"import os\nimport sys\n\nsys.path.append({here!r})\nos.chdir({here!r})\n"
        self._staged[f"{_TRIAL_MODULE}.py"] = module_source(function, preamble)
        return {
            "trial_function": f"{_TRIAL_MODULE}:{function.__name__}",
            "trial_code_directory": str(stage),
        }

    def _tuner_settings(
        self, tuner: type | str, args: Mapping[str, Any], stage: Path
    ) -> dict[str, Any]:
        if isinstance(tuner, str):
            return {"name": tuner, "class_args": dict(args)}
        owner = check_stands_alone(tuner, "tuner")
        name = _builtin_name(owner)
        if name is not None:
            return {"name": name, "class_args": dict(args)}
        if is_importable(owner):
            return {
                "class_name": f"{owner.__module__}:{owner.__qualname__}",
                "code_directory": str(import_folder(owner.__module__)),
                "class_args": dict(args),
            }
        preamble = f"import sys\n\nsys.path.append({str(Path.cwd())!r})\n"
        self._staged[_TUNER_FILE] = module_source(owner, preamble)
        file = str(stage / _TUNER_FILE)
        return {"class_name": owner.__name__, "file": file, "class_args": dict(args)}

    def _create(self) -> Path:
        from dispatcher.creating import create

        if not self._staged:
            return create(self.config)
        # The folder is known only when it is there, so the record is mended afterwards.
        with tempfile.TemporaryDirectory(prefix="bequeath-") as stage:
            for name, text in self._staged.items():
                (Path(stage) / name).write_text(text, encoding="utf-8")
            folder = ExperimentFolder(create(self._moved(self.config, Path(stage))))
            code = folder.path / "notebook"
            shutil.copytree(stage, code)
        recorded = from_json(folder.config.read_text(encoding="utf-8"), str(folder.config))
        self.config = self._moved(recorded, code)
        folder.config.write_text(to_json(self.config), encoding="utf-8")
        return folder.path

    def _moved(self, config: ExperimentConfig, code: Path) -> ExperimentConfig:
        """The configuration with the staged files in another folder."""
        update: dict[str, Any] = {}
        if f"{_TRIAL_MODULE}.py" in self._staged:
            update["trial_code_directory"] = code
        if _TUNER_FILE in self._staged:
            update["tuner"] = config.tuner.model_copy(update={"file": code / _TUNER_FILE})
        return config.model_copy(update=update)

    # -- running it -----------------------------------------------------------------------

    @property
    def folder(self) -> Path:
        """Where the experiment is kept. Raises ``UserError`` before it was started."""
        if self._folder is None:
            raise UserError(
                "the experiment has not been started", hint="call run() or start() first"
            )
        return self._folder

    @property
    def id(self) -> str:
        """The experiment's id, which is its folder's name."""
        return self.folder.name

    @property
    def running(self) -> bool:
        """Whether a head leads it now."""
        return self._folder is not None and is_led(self._folder)

    def start(self, *, take_over: bool = False) -> Experiment:
        """Start it in the background, or take it up again where it stopped; returns itself.

        Blocks until the head answers.

        Args:
            take_over: lead it with a new head even if one runs already, hung or not. That one
                can do no harm afterwards, and ends by itself; trials go on meanwhile.

        Raises:
            ExperimentBusy: it runs already, or somebody else is just taking over.
            BequeathError: the head ended before it answered; its own words.
        """
        if self._folder is None:
            self._folder = self._create()
            known_folders.remember(self._folder.parent)
        start_in_background(self._folder, take_over=take_over)
        return self

    def run(self, *, quiet: bool = False) -> ExperimentSummary:
        """Start it (or go on with it) and block until it is over, showing progress.

        Interrupting (Ctrl-C, or the notebook's stop button) lets running trials finish; a
        second time stops them at once. Both leave an experiment that ``run`` goes on with.

        Args:
            quiet: show nothing.

        Raises:
            UserError: the experiment failed; its reason.
            PassingBackendError: the head ended without winding up.
        """
        if not self.running:
            self.start()
        watching = None
        if not quiet:
            from dispatcher.cli.scene import Observer
            from dispatcher.cli.watching import Watching

            watching = Watching(Observer(self.folder, self.config.experiment_name))
            watching.start()
        try:
            self._wait_through_interrupts()
        finally:
            if watching is not None:
                watching.close()
        return self._outcome()

    def _wait_through_interrupts(self) -> None:
        kinds = iter((False, True))
        while True:
            try:
                self.wait()
                return
            except KeyboardInterrupt:
                now = next(kinds, None)
                if now is None:
                    raise
                self.stop(now=now, wait=False)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Block until no head leads it any more; false if the time was over before."""
        deadline = math.inf if timeout_s is None else time.monotonic() + timeout_s
        while self.running:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return False
            run = RunFile.read(self.folder)
            if run is not None and psutil.pid_exists(run.pid):
                # In slices, since another head may take over from one that never ends.
                with contextlib.suppress(psutil.Error):
                    psutil.Process(run.pid).wait(timeout=min(left_s, _LOOK_EVERY_S))
            else:  # it has ended, or another one has just begun
                time.sleep(_BETWEEN_HEADS_S)
        return True

    def stop(self, *, now: bool = True, wait: bool = True) -> None:
        """Stop it, so that :meth:`start` or :meth:`run` can go on with it.

        Args:
            now: stop running trials with their grace; else let them finish.
            wait: block until it has stopped.

        Raises:
            PassingBackendError: it does not run.
        """
        self._ask("stop", kind="now" if now else "drain", reason="stopped from Python")
        if wait:
            self.wait()

    def kill(self) -> None:
        """End all its processes at once (SIGKILL); it can be started again."""
        kill_experiment(self.folder)

    # -- looking at it --------------------------------------------------------------------

    def status(self) -> ExperimentSummary:
        """How it stands: status, counts, the best, rate, time left."""
        with queries.ExperimentReader.open(self.folder) as reader:
            return queries.experiment_summary(reader)

    def why(self) -> str:
        """One sentence: why nothing, or not more, is running."""
        from dispatcher.cli.why import explain

        return explain(self.folder)[1]

    def trials(self, wanted: queries.TrialFilter | None = None) -> list[TrialSummary]:
        """Its trials, in the order of their numbers.

        Args:
            wanted: which; a :class:`dispatcher.queries.TrialFilter`, such as
                ``TrialFilter(live=True)``. All if not given.
        """
        with queries.ExperimentReader.open(self.folder) as reader:
            return queries.list_trials(reader, wanted or queries.TrialFilter())

    def trial(self, number: int) -> TrialDetail:
        """All about one trial. Raises ``TrialNotFound``."""
        with queries.ExperimentReader.open(self.folder) as reader:
            return queries.trial(reader, number)

    def best(self) -> TrialSummary | None:
        """The best trial by ``optimize_mode``; None while there is no result."""
        found = self.leaders(1)
        return found[0] if found else None

    def leaders(self, many: int = 5) -> list[TrialSummary]:
        """The best trials, the best first."""
        with queries.ExperimentReader.open(self.folder) as reader:
            return queries.best(reader, many)

    def rows(self) -> list[dict[str, Any]]:
        """One flat dict a trial, as ``pandas.DataFrame`` takes them.

        Keys such as ``trial``, ``outcome``, ``value`` and ``parent``; parameters under
        ``parameters.<name>``.
        """
        with queries.ExperimentReader.open(self.folder) as reader:
            return queries.export_rows(reader)

    def lineage(self) -> Lineage:
        """Who inherited from whom; print :meth:`lineage_text` to see it."""
        with queries.ExperimentReader.open(self.folder) as reader:
            return queries.lineage(reader)

    def lineage_text(self) -> str:
        """The inheritance tree as text."""
        return queries.lineage_text(self.lineage())

    def plot(self, kind: PlotKind = "progress", path: str | Path | None = None) -> PlotFile:
        """Draw it into a PNG file, which a notebook shows.

        Args:
            kind: ``progress``, ``parallel`` or ``lineage``.
            path: the file; in the experiment's folder if not given.

        Raises:
            UserError: matplotlib is missing, or the file cannot be written.
        """
        from dispatcher.queries import pictures

        painters = {
            "progress": pictures.draw_progress,
            "parallel": pictures.draw_parallel,
            "lineage": pictures.draw_lineage,
        }
        if kind not in painters:
            raise UserError(f"there is no plot {kind!r}", hint=f"one of {', '.join(painters)}")
        target = Path(path) if path is not None else self.folder / f"{kind}.png"
        with queries.ExperimentReader.open(self.folder) as reader:
            painters[kind](reader, target)
        return PlotFile(target)

    # -- changing it while it runs --------------------------------------------------------

    def submit(self, parameters: Mapping[str, Any]) -> int:
        """Run a trial with parameters of your own; returns its number.

        Returns when the head has recorded it, before it runs. It is queued behind those that
        wait for a slot, may name save and restore paths, and is told to the tuner when it ends.

        Raises:
            UserError: they are no JSON, or their paths are taken or lead nowhere.
            PassingBackendError: the experiment does not run.
        """
        return int(self._ask("submit", parameters=dict(parameters))["trial"])

    def stop_trial(self, number: int) -> None:
        """End one trial; it counts as failed and is not retried.

        Returns when the head has recorded the wish; the trial still has its grace.

        Raises:
            UserError: there is no such trial.
            PassingBackendError: the experiment does not run.
        """
        self._ask("stop_trial", trial=number)

    def update(self, key: str, value: Any) -> None:
        """Change a limit or the search space of the running experiment.

        Args:
            key: ``trial_concurrency``, ``max_trial_number``, ``max_experiment_duration``,
                ``lookahead`` or ``search_space``, in either spelling.
            value: as in the experiment file.

        Raises:
            UserError: another key, or a value that the file could not have either.
            PassingBackendError: the experiment does not run.
        """
        self._ask("update", key=key, value=value)

    def _ask(self, verb: str, **arguments: Any) -> Any:
        with HeadClient(self.folder) as client:
            return client.ask(verb, **arguments)

    def _outcome(self) -> ExperimentSummary:
        summary = self.status()
        status = queries.ExperimentStatus
        if summary.status is status.FAILED:
            raise UserError(
                f"the experiment failed: {summary.phase_reason}",
                hint="mend it, then run() goes on with it",
                where=summary.id,
            )
        if summary.status is status.INTERRUPTED:
            raise PassingBackendError(
                "the head ended without winding up",
                hint="run() goes on from the last committed state",
                where=str(ExperimentFolder(self.folder).logs / "head.stderr"),
            )
        return summary

    def __repr__(self) -> str:
        if self._folder is None:
            return f"<Experiment {self.config.experiment_name!r}, not started>"
        summary = self.status()
        best = f", best {summary.best.value:.6g}" if summary.best is not None else ""
        return f"<Experiment {summary.id} {summary.status}, {summary.ended} trials over{best}>"


def _builtin_name(owner: Definition) -> str | None:
    if not owner.__module__.startswith("tuners."):
        return None
    from tuners.builtin import BUILTIN_NAMES, builtin_tuner

    return next((name for name in BUILTIN_NAMES if builtin_tuner(name) is owner), None)
