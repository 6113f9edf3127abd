"""Experiments from Python: a notebook or a script does what the command line does.

The tuner, the trials and the head run in processes of their own, so an experiment goes on
when a notebook's kernel is restarted, and nothing it does can stop the notebook.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dispatcher import queries
from dispatcher.errors import UserError
from dispatcher.experiment import ExperimentConfig, build_experiment, load_experiment
from dispatcher.experiments import known_folders
from dispatcher.experiments.handle import ExperimentHandle
from dispatcher.experiments.outcome import outcome_of
from dispatcher.notebook import showing
from dispatcher.notebook.arguments import mapping, trial_filter, warn_of_doubts, whole
from dispatcher.notebook.code import NotebookCode
from dispatcher.notebook.events import events_of
from dispatcher.notebook.hearing import Hearing, Hears
from dispatcher.notebook.spoken import speaks_python, warn
from dispatcher.notebook.waiting import through_interrupts
from tuners.space import as_json

if TYPE_CHECKING:
    from dispatcher.notebook.following import ExperimentEvent
    from dispatcher.queries import ExperimentSummary, Lineage, TrialDetail, TrialSummary

__all__ = ["Experiment", "PlotFile"]

PlotKind = Literal[
    "progress", "parallel", "lineage", "importance", "slice", "contour", "pareto", "timeline",
    "slots", "hypervolume",
]  # fmt: skip


class PlotFile:
    """A picture on disk, which a notebook shows by itself."""

    def __init__(self, path: Path) -> None:
        self.path = path  #: where the PNG file lies

    def __repr__(self) -> str:
        return f"<picture {self.path}>"

    def _repr_png_(self) -> bytes:
        return self.path.read_bytes()


@speaks_python
class Experiment:
    """One experiment: what it is before it starts, and the hand on it afterwards.

    Args:
        config: an experiment file's path, its content as a mapping, or a configuration; not
            needed when everything is given by keywords.
        trial: a function, or ``"module:function"``. It is called with its parameters (or
            without, and asks for them by ``trial_runtime.get_parameters``) in another
            process; what it returns is its final result. One of a notebook is written out
            as source, with a copy of the data that it uses.
        tuner: a built-in tuner's name, or a tuner class; its arguments go into
            ``tuner_args``.
        tuner_args: keyword arguments of the tuner's constructor, any JSON values.
        **settings: keys of an experiment file in snake_case, such as ``max_trial_number``;
            they win over ``config``. ``bequeath config reference`` prints them all. A
            ``search_space`` may have what :mod:`tuners.space.parameters` makes.

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
        ...     search_space={"x": "uniform(0, 1)"},
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
    they raise ``UserError`` before the experiment was started. ``stop``, ``submit`` and
    ``stop_trial`` raise ``PassingBackendError`` if it does not run.
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
        self._handle: ExperimentHandle | None = None
        self._code = NotebookCode()
        given = {"trial": trial, "tuner": tuner, "tuner_args": tuner_args, **settings}
        if isinstance(config, ExperimentConfig | str | Path):
            extra = [name for name, value in given.items() if value is not None]
            if extra:
                raise UserError(
                    f"{extra[0]!r} cannot be given beside a whole experiment file",
                    hint="give the settings as a mapping or as keywords, or change the file",
                )
            if not isinstance(config, ExperimentConfig):
                config = known_folders.with_default_folder(load_experiment(config))
            self.config = config
            return
        values: dict[str, Any] = {**mapping("config", config), **settings}
        with tempfile.TemporaryDirectory(prefix="bequeath-") as stage:
            if trial is not None:
                values |= self._code.trial_settings(trial, Path(stage), values)
            if tuner is not None:
                values["tuner"] = self._code.tuner_settings(tuner, tuner_args or {}, Path(stage))
            self._code.write_into(Path(stage))
            self.config = known_folders.with_default_folder(build_experiment(values))

    @classmethod
    def open(cls, experiment: str | Path) -> Experiment:
        """An experiment that exists already, running or not: by folder, id, beginning or name.

        One of somebody else is opened by its folder, to be looked at.

        Raises:
            ExperimentNotFound: there is none.
            UserError: there are several.
        """
        handle = ExperimentHandle.find(str(experiment))
        opened = cls(handle.config())
        opened._handle = handle
        return opened

    # -- running it -----------------------------------------------------------------------

    @property
    def folder(self) -> Path:
        """The experiment's folder. Raises ``UserError`` before it was started."""
        return self._known.folder

    @property
    def _known(self) -> ExperimentHandle:
        if self._handle is None:
            raise UserError(
                "the experiment has not been started", hint="call run() or start() first"
            )
        return self._handle

    @property
    def id(self) -> str:
        """The experiment's id, which is its folder's name."""
        return self.folder.name

    @property
    def running(self) -> bool:
        """Whether a head leads it now."""
        return self._handle is not None and self._handle.running

    def start(self, *, take_over: bool = False) -> Experiment:
        """Start it in the background, or take it up again where it stopped; returns itself.

        Blocks until the head answers.

        Args:
            take_over: lead it with a new head even if one runs already, hung or not. That one
                can do no harm afterwards, and ends by itself; trials go on meanwhile.

        Raises:
            ExperimentBusy: it runs already, or somebody else is just taking over.
            DispatcherError: the head ended before it answered; its own message.
        """
        if self._handle is None:
            self._handle = self._code.create(self.config)
            self.config = self._handle.config()
        self._handle.start(take_over=take_over)
        return self

    def run(
        self, *, quiet: bool = False, on_trial_end: Hears = None, on_new_best: Hears = None
    ) -> ExperimentSummary:
        """Start it (or go on with it) and block until it is over, showing progress.

        Interrupting (Ctrl-C, or the notebook's stop button) lets running trials finish; a
        second time stops them at once. Both leave an experiment that ``run`` goes on with.

        Args:
            quiet: show nothing.
            on_trial_end: called here, in a thread, for each trial that has run and ends meanwhile.
            on_new_best: the same for a trial that is better than all before it.

        Raises:
            UserError: the experiment failed; its reason.
            PassingBackendError: the head ended without winding up.
        """
        folder = None if self._handle is None else self.folder
        with Hearing(folder, on_trial_end, on_new_best) as hearing:
            if not self.running:
                self.start()
            hearing.follow(self.folder)
            wait = self._wait_through_interrupts if quiet else self._wait_in_sight
            wait()
        return outcome_of(self.status(), self._known.place)

    def _wait_in_sight(self) -> None:
        from dispatcher.live_view.scene import Observer
        from dispatcher.live_view.watching import Watching

        with closing(Watching(Observer(self.folder, self.config.experiment_name))) as watching:
            watching.start()
            self._wait_through_interrupts()

    def _wait_through_interrupts(self) -> None:
        through_interrupts(self.wait, lambda now: self.stop(now=now, wait=False))

    def wait(self, timeout_s: float | None = None) -> bool:
        """Block until no head leads it any more; false if the time was over before."""
        return self._handle is None or self._handle.wait(timeout_s)

    def stop(self, *, now: bool = True, wait: bool = True) -> None:
        """Stop it, so that :meth:`start` or :meth:`run` can go on with it.

        Args:
            now: stop running trials with their grace; else let them finish.
            wait: block until it has stopped.

        Raises:
            PassingBackendError: it does not run.
        """
        self.perform("stop", drain=not now, wait=wait)

    def kill(self) -> None:
        """End all its processes at once (SIGKILL); it can be started again."""
        self.perform("kill")

    # -- looking at it --------------------------------------------------------------------

    def status(self) -> ExperimentSummary:
        """How it stands: status, counts, the best, rate, time left."""
        return self._known.status()

    def events(self, *, metrics: bool = True, past: bool = True) -> AsyncIterator[ExperimentEvent]:
        """Events as they happen, for ``async for``, until no head leads it any more.

        Args:
            metrics: with reports of trials that go on.
            past: what has happened before comes first.
        """
        return events_of(self._known, metrics=metrics, past=past)

    def why(self) -> str:
        """The reason why nothing, or not more, is running, in one sentence."""
        return str(self.perform("why").text)

    def trials(self, wanted: queries.TrialFilter | str | None = None) -> list[TrialSummary]:
        """The trials, in the order of their numbers.

        Args:
            wanted: which; a condition, such as ``"value > 0.9"`` (Python warns of names that no
                trial has), or a :class:`dispatcher.queries.TrialFilter`. All if not given.
        """
        chosen = trial_filter(wanted)
        found = self._known.trials(chosen)
        warn_of_doubts(self._known, chosen)
        return showing.ListedTrials(found)

    def trial(self, number: int) -> TrialDetail:
        """All about one trial. Raises ``TrialNotFound``."""
        return self._known.trial(whole("number", number))

    def best(self) -> TrialSummary | None:
        """The best trial by ``optimize_mode``; None while there is no result."""
        leaders = self.leaders(1)
        return leaders[0] if leaders else None

    def leaders(self, many: int = 5) -> list[TrialSummary]:
        """The best trials, the best first."""
        with self._known.reading() as reader:
            return showing.ListedTrials(queries.best(reader, whole("many", many, 1)))

    def front(self) -> list[TrialSummary]:
        """The trials that no other one beats in all of several objectives, within their bounds, by
        the first objective; empty with one."""
        with self._known.reading() as reader:
            return showing.ListedTrials(queries.front(reader))

    def rows(self) -> list[dict[str, Any]]:
        """One flat dict a trial, as ``pandas.DataFrame`` takes them.

        Keys such as ``trial``, ``outcome``, ``value`` and ``parent``; parameters under
        ``parameters.<name>``, what a final result holds beside ``default`` under
        ``metrics.<name>``.
        """
        return self._known.rows()

    def metric_rows(self) -> list[dict[str, Any]]:
        """One flat dict for each value that a trial reported, as ``pandas.DataFrame`` takes them.

        Keys are ``trial``, ``attempt``, ``seq``, ``at``, ``final``, ``counted``, ``value``, and
        ``metrics.<name>`` for what a value holds beside ``default``.
        """
        return self._known.metric_rows()

    def lineage(self) -> Lineage:
        """The inheritance tree, as records; :meth:`lineage_text` shows it as text."""
        return self._known.lineage()

    def lineage_text(self) -> str:
        """The inheritance tree as text."""
        return queries.lineage_text(self.lineage())

    def plot(
        self, kind: PlotKind = "progress", path: str | Path | None = None, **choice: Any
    ) -> PlotFile:
        """Draw it into a PNG file, which a notebook shows.

        ``perform("plot contour", x="lr")`` returns the numbers of a picture instead.

        Args:
            kind: what is drawn.
            path: the file; in the experiment's folder if not given.
            **choice: of it, by the names of the operation's arguments, as ``x="lr"``.

        Raises:
            UserError: there is no such parameter or number, matplotlib is missing, or the
                file cannot be written.
        """
        target = Path(path) if path is not None else self.folder / f"{kind}.png"
        self._known.draw(kind, target, **choice)
        return PlotFile(target)

    def perform(self, operation: str, /, *, trial: int | None = None, **arguments: Any) -> Any:
        """Carry out any operation of the table by its name, such as ``weights du``; its answer,
        whose attributes are the keys of ``--json``. :mod:`dispatcher.operations` lists them.

        Nobody is asked whether weights or an experiment shall go.

        Args:
            operation: its name, as of the command line.
            trial: the trial that it is about, if it is about one.
            **arguments: its own.

        Raises:
            UserError: there is no such operation, or it cannot take these arguments.
            DispatcherError: it cannot be done.

        Example:
            >>> experiment.perform("weights gc", keep="best:3").bytes  # doctest: +SKIP
            1048576
        """
        from dispatcher.operations.operation import Context, arguments_of, perform
        from dispatcher.operations.table import operation as row

        wish = row(operation)
        given = arguments_of(wish, arguments)
        context = Context(note=warn) if arguments.get("where") else Context()
        return perform(wish, context, given, experiment=str(self._known.folder), trial=trial)

    # -- changing it ----------------------------------------------------------------------

    def submit(self, parameters: Mapping[str, Any]) -> int:
        """Run a trial with parameters of your own; returns its number.

        Returns when the head has recorded it, before it runs. It is queued behind those that
        wait for a slot, may name save and restore paths, and the tuner gets its end.

        Raises:
            UserError: they are no JSON, or their paths are taken or lead nowhere.
            PassingBackendError: the experiment does not run.
        """
        return int(self.perform("trial submit", parameters=mapping("parameters", parameters)).trial)

    def stop_trial(self, number: int) -> None:
        """End one trial; it counts as failed and is not retried.

        Returns when the head has recorded the wish; the trial still has its grace.

        Raises:
            UserError: there is no such trial.
            PassingBackendError: the experiment does not run.
        """
        self.perform("trial kill", trials=[number])

    def update(self, key: str, value: Any) -> None:
        """Change a limit or the search space: at once if it runs, for its next start if not.

        ``config`` is what it is from then on. What will be missed if the experiment goes on, such
        as weights that are gone, is a Python warning.

        Args:
            key: ``trial_concurrency``, ``max_trial_number``, ``max_experiment_duration``,
                ``stop_when``, ``lookahead`` or ``search_space``, in either spelling.
            value: as in the experiment file.

        Raises:
            NotOurs: the experiment is somebody else's.
            UserError: another key, or a value that the file could not have either.
        """
        updated = self.perform("experiment update", key=key, value=as_json(value))
        self.config = self._known.config()
        if updated.warning:
            warn(updated.warning)

    def __repr__(self) -> str:
        return showing.short(self, started=self._handle is not None)

    def _repr_html_(self) -> str:
        return showing.as_table(self, started=self._handle is not None)
