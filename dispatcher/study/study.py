"""A study: a search whose trials a program asks for, computes, and tells the results of."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from dispatcher.errors import UserError
from dispatcher.notebook.arguments import whole
from dispatcher.notebook.spoken import speaks_python, warn
from dispatcher.study.leading import LedStudy
from dispatcher.study.opening import StudyWish, open_or_create
from dispatcher.study.trial import StudyTrial
from dispatcher.study.turn import StudyTurn
from trial_runtime.api_errors import InvalidMetric
from tuners.errors import NoMoreTrialError

if TYPE_CHECKING:
    from dispatcher.api import Experiment
    from dispatcher.experiments.handle import ExperimentHandle
    from dispatcher.queries import TrialSummary
    from dispatcher.study.warm_start import WarmStart


@speaks_python
class Study:
    """A search that this program leads: it asks for trials, and tells their results.

    Without ``space``, trials suggest their parameters as they run (``t.suggest_float``). It is an
    experiment like all others: ``bequeath best``, ``lineage``, ``plot`` and the web page show it.

    Args:
        space: the search space, as a mapping; None: it grows as parameters are suggested.
        tuner: name of a built-in tuner; ``TPE`` if not given. Without a space ``Random``, or one
            of Optuna's samplers.
        tuner_args: its arguments.
        optimize: ``maximize`` (if not given) or ``minimize``.
        objectives: several numbers of the result, each with its direction, a bound, or both:
            ``{"default": "maximize", "size": "minimize <= 4096"}``.
        name: to show and to search by.
        folder: of this study. One that is there already is opened again and goes on; what is given
            beside it must be as it was. Not given: a new one in the usual place.
        seed: of everything random; drawn and recorded if not given.
        assessor: name of a built-in assessor, which may end trials early.
        assessor_args: its arguments.

    Raises:
        UserError: a value that does not fit, or that contradicts the study in ``folder``.
        ExperimentBusy: another process leads the study.

    Example:
        >>> import bequeath as bq
        >>> study = bq.Study({"x": bq.uniform(-10, 10)}, optimize="minimize")  # doctest: +SKIP
        >>> t = study.ask()  # doctest: +SKIP
        >>> study.tell(t, (t.parameters["x"] - 2) ** 2)  # doctest: +SKIP

    Methods may be called from any thread. A study is closed at the end of the program, or by
    ``close``, or by ``with``.
    """

    #: Arguments of Optuna's ``create_study``, and what is written here.
    _OTHERS_NAMES = {  # noqa: RUF012 - nobody changes it
        "direction": "optimize='minimize'",
        "directions": "objectives={'default': 'maximize', 'size': 'minimize'}",
        "sampler": "tuner='TPE'",
        "pruner": "assessor='Medianstop'",
        "study_name": "name='first'",
        "storage": "folder='runs/first'",
        "load_if_exists": "folder='runs/first', which goes on if it is there",
    }

    def __init__(
        self,
        space: Mapping[str, Any] | Any = None,
        *,
        tuner: str | None = None,
        tuner_args: Mapping[str, Any] | None = None,
        optimize: str | None = None,
        objectives: Mapping[str, str] | None = None,
        name: str | None = None,
        folder: str | Path | None = None,
        seed: int | None = None,
        assessor: str | None = None,
        assessor_args: Mapping[str, Any] | None = None,
    ) -> None:
        wish = StudyWish(
            space,
            tuner,
            tuner_args,
            optimize,
            objectives,
            name,
            folder,
            seed,
            assessor,
            assessor_args,
        )
        place, config, _ = open_or_create(wish)
        self._lock = StudyTurn()
        self._led = LedStudy(place, config, self._lock)
        self._folder = place.path
        # At the latest with the program, and without keeping the study alive.
        self._finalizer = weakref.finalize(self, _close, self._led, self._lock)

    # -- ask and tell -----------------------------------------------------------------------

    def ask(self, *, parent: int | StudyTrial | None = None) -> StudyTrial:
        """Ask for a trial. What was enqueued comes first.

        Args:
            parent: a trial whose weights it starts from; its own save path is made beside.

        Raises:
            NoMoreTrialError: the tuner has been through all there is.
            UserError: the parent has no weights.
        """
        with self._lock:
            return self._led.ask(parent, on_record=True)

    def tell(self, trial: int | StudyTrial, value: Any) -> None:
        """Tell the result of a trial; it is in the store when this returns, or 20 ms later if the
        trial took less.

        Args:
            trial: what ``ask`` returned, or its number.
            value: a finite number, or a mapping with a finite number under ``default``.

        Raises:
            InvalidMetric: the value is something else, NaN or infinite, or lacks an objective; the
                trial goes on.
            UserError: there is no such trial, or it is over.
        """
        with self._lock:
            self._led.tell(trial, value)

    def fail(self, trial: int | StudyTrial, reason: str = "") -> None:
        """End a trial without a result; the tuner counts it as failed.

        Args:
            trial: what ``ask`` returned, or its number.
            reason: for the record, in a sentence.

        Raises:
            UserError: there is no such trial, or it is over.
        """
        with self._lock:
            self._led.fail(trial, reason)

    @property
    def unfinished(self) -> list[StudyTrial]:
        """The trials that were asked for and not told, also by programs before this one.

        Of theirs, a trial without a given space is among them from its first report or weights on.
        """
        with self._lock:
            return self._led.unfinished()

    def optimize(
        self,
        trial: Callable[[StudyTrial], Any],
        n_trials: int,
        *,
        catch: type[Exception] | Iterable[type[Exception]] = (),
    ) -> Self:
        """Run trials one after another in this thread: ``trial`` returns the result.

        Those that a program before this one began and did not finish are run again first, with the
        same parameters, and count among ``n_trials``. A result that is NaN or infinite counts as a
        failure.

        Args:
            trial: is called with a :class:`StudyTrial`.
            n_trials: how many to run; fewer if the tuner has been through all there is.
            catch: exceptions of it that end their trial and not the search.

        Raises:
            UserError: it returned no result, or an argument is none.
        """
        whole("n_trials", n_trials)
        if not callable(trial):
            raise UserError(
                f"trial must be a function that takes a trial, not {trial!r}",
                hint="write, for example, study.optimize(objective, n_trials=20)",
            )
        catch = _exceptions(catch)
        with self._lock:
            self._led.run_again()
        for _ in range(n_trials):
            try:
                with self._lock:
                    one = self._led.ask(None, on_record=False)
            except NoMoreTrialError:
                break
            try:
                value = trial(one)
            except catch as error:
                self.fail(one, f"{type(error).__name__}: {error}")
                continue
            except BaseException as error:
                self.fail(one, f"{type(error).__name__}: {error}")
                raise
            self._take_result(one, value)
        return self

    def _take_result(self, one: StudyTrial, value: Any) -> None:
        if value is None:
            self.fail(one, "it returned None")
            raise UserError(
                f"trial {one.id} returned None",
                hint="return its result: a number, or a mapping with a number under 'default'",
            )
        try:
            self.tell(one, value)
        except InvalidMetric as error:
            self.fail(one, error.message)
            warn(f"trial {one.id} failed: {error.message}")

    # -- before it begins -------------------------------------------------------------------

    def enqueue(self, parameters: Mapping[str, Any]) -> None:
        """Have a trial with parameters of your own; the next ``ask`` or ``optimize`` takes it.

        Without a space it may name some parameters only: the tuner suggests the others. A warning
        names those that the trial never suggested.

        Raises:
            UserError: parameters that are no JSON, or that the space lacks or does not allow.
        """
        with self._lock:
            self._led.enqueue(parameters)

    def warm_start(
        self, source: Any, *, study_name: str | None = None, metric: str | None = None
    ) -> WarmStart:
        """Show the tuner results of another search. They become no trials of this study.

        Args:
            source: another study or experiment (itself, its folder, id or name); a file that
                ``bequeath experiment export`` or NNI wrote (CSV or JSON); a study of Optuna, or
                its SQLite file, URL or journal file; a folder of results of Ray Tune.
            study_name: which study of Optuna's, if the file has several.
            metric: which metric of Ray Tune's is the result.

        Returns:
            How many were taken, and why others were not; it prints as a sentence.

        Raises:
            UserError: the source cannot be read, or optimizes in the other direction.
        """
        from dispatcher.study.warm_start import read_results

        found = read_results(source, self._led.modes, study_name, metric)
        with self._lock:
            return self._led.warm_start(found)

    # -- looking at it ----------------------------------------------------------------------

    @property
    def folder(self) -> Path:
        """The folder of the study; ``bq.Study(folder=…)`` goes on there."""
        return self._folder

    @property
    def experiment(self) -> Experiment:
        """The same as an experiment, to be looked at: plots, lineage, rows, notes."""
        from dispatcher.api import Experiment

        self.flush()
        return Experiment.open(self.folder)

    def best(self) -> TrialSummary | None:
        """The best trial so far; None while there is no result."""
        from dispatcher import queries

        with self._written().reading() as reader:
            leaders = queries.best(reader, 1)
        return leaders[0] if leaders else None

    def front(self) -> list[TrialSummary]:
        """The trials that no other one beats in all of several objectives, within their bounds."""
        from dispatcher import queries

        with self._written().reading() as reader:
            return queries.front(reader)

    def trials(self) -> list[TrialSummary]:
        """All trials, in the order of their numbers; not those that nobody has got yet."""
        from dispatcher.notebook.showing import ListedTrials

        return ListedTrials(each for each in self._written().trials() if each.state != "open")

    def _written(self) -> ExperimentHandle:
        """All that is known, for readers; they are loaded when somebody reads."""
        from dispatcher.experiments.handle import ExperimentHandle

        self.flush()
        return ExperimentHandle(self._folder)

    def flush(self) -> None:
        """Write all that is known, for readers in other processes. ``close`` does it too."""
        with self._lock:
            self._led.flush()

    def close(self) -> None:
        """Let go of the study; it can be opened again. Idempotent; does nothing in a fork."""
        if self._lock.is_here:
            self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Study {self.folder.name}: {self._led.ended} trials told>"


def _close(led: LedStudy, lock: StudyTurn) -> None:
    """Close a study when nothing is being written; a fork of its program leaves it alone."""
    if lock.is_here:
        with lock:
            led.close()


def _exceptions(
    given: type[Exception] | Iterable[type[Exception]],
) -> tuple[type[Exception], ...]:
    """Return classes of exceptions as ``except`` takes them. Raises ``UserError``."""
    many = tuple(given) if isinstance(given, Iterable) else (given,)
    for one in many:
        if not (isinstance(one, type) and issubclass(one, Exception)):
            raise UserError(
                f"catch names {one!r}, which is no class of exceptions",
                hint="write, for example, catch=ValueError",
            )
    return many
