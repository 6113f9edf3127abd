"""One trial of a study, as the program sees it that computes it."""

from __future__ import annotations

import copy
import json
import math
import operator
import time
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Protocol

from dispatcher.errors import UserError
from dispatcher.notebook.spoken import speaks_python, warn
from tuners.plain_json import of_numpy
from tuners.space import as_json, parse
from tuners.space import parameters as kinds
from tuners.space.model import Choice, Dimension, Space


class TrialLead(Protocol):
    """Answers trials: the lead of their study. From any thread."""

    def suggest(self, trial: StudyTrial, name: str, dimension: Dimension) -> Any:
        """See :meth:`StudyTrial.suggest`."""
        ...

    def report(self, trial: StudyTrial, value: Any, step: int | None) -> None:
        """See :meth:`StudyTrial.report`."""
        ...

    def inherit(self, trial: StudyTrial, parent: int | StudyTrial) -> None:
        """See :meth:`StudyTrial.inherit`."""
        ...

    def save(self, trial: StudyTrial, state: Any) -> str:
        """See :meth:`StudyTrial.save_weights`."""
        ...

    def load(self, trial: StudyTrial, into: Any, options: dict[str, Any]) -> Any:
        """See :meth:`StudyTrial.load_weights`."""
        ...


#: What trials of Optuna's have by another name.
_OPTUNAS = {
    "should_prune": "t.should_stop(), and return the result so far",
    "number": "t.id",
    "params": "t.parameters",
    "set_user_attr": "study.experiment.perform('trial note', trial=t.id, text=…) once it was told",
    "user_attrs": "study.experiment.perform('trial note', trial=t.id, text=…) once it was told",
    "suggest_uniform": "t.suggest_float(name, low, high)",
    "suggest_loguniform": "t.suggest_float(name, low, high, log=True)",
    "suggest_discrete_uniform": "t.suggest_float(name, low, high, step=…)",
}


@speaks_python
class StudyTrial:
    """One trial of a study: its parameters, its weights, its reports.

    ``study.ask()`` returns one, and ``study.optimize(trial)`` calls ``trial`` with one. Any thread
    may use it; a fork may not.

    Attributes:
        id: its number.
        attempt: the number of this attempt at it, from 1.
        parent: the trial whose weights it starts from; None if there is none.
    """

    def __init__(
        self,
        lead: TrialLead,
        number: int,
        parameters: Mapping[str, Any],
        *,
        attempt: int = 1,
        on_record: bool = False,
        fixed: Mapping[str, Any] | None = None,
        parent: int | None = None,
    ) -> None:
        self.id = number
        self.attempt = attempt
        self.parent = parent
        self.lead = lead  #: answers it
        self.on_record = on_record  #: whether its parameters are final, and in the store
        self.fixed = dict(fixed or {})  #: parameters that were enqueued, and not suggested
        self.began = time.monotonic()  #: moment of the monotonic clock
        self.stops = False  #: whether an assessor wants it to end
        self.step: int | None = None  #: of the last report that named one
        self.values = dict(parameters)  #: its parameters so far; the study changes them

    def descend(self, parent: int | None) -> None:
        """Name the trial whose weights this one starts from; the lead calls it."""
        self.parent = parent

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters so far, a copy."""
        return dict(self.values)

    # -- define by run ----------------------------------------------------------------------

    def suggest_float(
        self,
        name: str,
        low: float,
        high: float,
        *,
        step: float | None = None,
        log: bool = False,
    ) -> float:
        """A number between two bounds; the same one each time it is asked for.

        Args:
            name: of the parameter.
            low: the lower bound.
            high: the upper bound.
            step: the distance of two numbers, of which ``low`` is a multiple.
            log: spread evenly by the logarithm; not together with a step.

        Raises:
            UserError: other bounds than before, a name that comes too late, or one that the space
                lacks.
            SpaceError: bounds that hold nothing.
        """
        return float(self.suggest(name, _of_floats(name, low, high, step, log)))

    def suggest_int(
        self, name: str, low: int, high: int, *, step: int = 1, log: bool = False
    ) -> int:
        """A whole number, both bounds included; the same one each time it is asked for.

        Args:
            name: of the parameter.
            low: the smallest number.
            high: no number is above it.
            step: the distance of two numbers.
            log: spread evenly by the logarithm; not together with a step.

        Raises:
            UserError: as of :meth:`suggest_float`.
            SpaceError: bounds that hold nothing.
        """
        return int(self.suggest(name, kinds.int(low, high, step, log)))

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:
        """One of several plain values, as it is given; the same one each time it is asked for.

        Raises:
            UserError: as of :meth:`suggest_float`.
            SpaceError: no choices, or what is no JSON.
        """
        given = of_numpy(list(choices))
        value = self.suggest(name, kinds.choice(given))
        if isinstance(value, list):  # of the store, which has no tuples
            return next((one for one in given if json.dumps(one) == json.dumps(value)), value)
        return value

    def suggest_blocks(
        self, name: str, low: int, high: int, block: Mapping[str, Any] | Dimension | Space
    ) -> list[Any]:
        """A list of blocks, such as the layers of a network; the same one each time it is asked
        for.

        Without a search space the study's tuner is ``Random``: samplers of Optuna model single
        values. With one it is any tuner that searches lists.

        Args:
            name: of the parameter.
            low: the fewest blocks.
            high: the most blocks.
            block: as of ``bq.blocks``, such as ``{"op": bq.choice("conv", "pool")}``.

        Raises:
            UserError: as of :meth:`suggest_float`.
            SpaceError: bounds that hold nothing, or a tuner that cannot search lists.
        """
        return copy.deepcopy(list(self.suggest(name, kinds.blocks(low, high, block))))

    def suggest(self, name: str, dimension: Dimension | str | Mapping[str, Any]) -> Any:
        """A parameter of any kind, such as ``bq.normal(0, 1)``; the same one each time.

        Args:
            name: of the parameter.
            dimension: its values; also as a file has them: ``"normal(0, 1)"``.

        Raises:
            UserError: as of :meth:`suggest_float`.
            SpaceError: what is no parameter.
        """
        if not isinstance(dimension, Dimension):
            ((_, dimension),) = parse({"parameter": dimension}).dimensions
        return self.lead.suggest(self, name, dimension)

    # -- while it runs ----------------------------------------------------------------------

    def report(self, value: Any, step: int | None = None) -> None:
        """Report a metric of a trial that goes on, for people to watch and assessors to judge.

        Args:
            value: a finite number, or a mapping with a finite number under ``default``.
            step: its number, such as an epoch; above that of the report before.

        Raises:
            InvalidMetric: the value is something else, NaN or infinite.
            UserError: the trial is over, or the step is not above the one before.
        """
        self.lead.report(self, value, step)

    def should_stop(self) -> bool:
        """Whether the study's assessor wants this trial to end; return its result then."""
        return self.stops

    def inherit(self, parent: int | StudyTrial) -> None:
        """Start from the weights of another trial, whose number becomes :attr:`parent`.

        Raises:
            UserError: that trial has no weights, or this one is on record already.
        """
        self.lead.inherit(self, parent)

    def save_weights(self, state: Any) -> str:
        """Publish weights that later trials may inherit, once this one has been told.

        Tensors that equal the parent's are referred to and not written again. May be called again;
        the newest counts.

        Args:
            state: a module, or nested dicts and lists of tensors, modules, optimisers, numbers.

        Returns:
            The folder they were published in.

        Raises:
            WeightsError: they cannot be stored.
            UserError: the trial is over.
        """
        return self.lead.save(self, state)

    def load_weights(self, into: Any = None, **options: Any) -> Any:
        """Load the parent's weights; None if this trial has no parent.

        Args:
            into: a module, or nested dicts of tensors and modules, to copy into; without it the
                state itself is returned.
            **options: as in :func:`trial_runtime.weights.load`.

        Raises:
            WeightsError: they are missing, torn, changed, or do not fit.
        """
        return self.lead.load(self, into, options)

    if not TYPE_CHECKING:  # a checker of types shall miss what is not there

        def __getattr__(self, name: str) -> Any:
            ours = _OPTUNAS.get(name)
            hint = f": write {ours}" if ours else ""
            raise AttributeError(f"a trial of a study has no {name!r}{hint}")

    def __repr__(self) -> str:
        parent = "" if self.parent is None else f", from {self.parent}"
        return f"<StudyTrial {self.id}{parent}: {self.values}>"


#: Steps from 0 to a bound: finer ones are lost in the digits of a number.
_FINEST = 1e15


def _of_floats(name: str, low: float, high: float, step: float | None, log: bool) -> Dimension:
    low, high, step = map(of_numpy, (low, high, step))
    if step is not None and log:
        raise UserError(f"{name!r} has a step and a logarithm", hint="leave one of them out")
    if low == high and _is_finite(low):
        return Choice((float(low),))
    made = kinds.loguniform(low, high) if log else kinds.uniform(low, high)
    if step is None:
        return made
    number = isinstance(step, int | float) and not isinstance(step, bool)
    if not number or not max(abs(low), abs(high)) / _FINEST < step < math.inf:
        raise UserError(f"{name!r} has a step of {step!r}", hint="write a number above 0")
    if abs(low / step - round(low / step)) > 1e-9:
        raise UserError(
            f"{name!r} begins at {low:g}, which is no multiple of its step {step:g}",
            hint="begin at a multiple of the step, or take suggest_categorical",
        )
    high = _last(low, high, step)
    return kinds.quniform(low, high, step) if high > low else Choice((float(low),))


def _last(low: float, high: float, step: float) -> float:
    """The last number up to ``high``, summed up in decimals: three steps of 0.3 are 0.9."""
    begin, end, one = (Decimal(str(each)) for each in (low, high, step))
    return float(begin + (end - begin) // one * one)


def number_of_trial(given: Any) -> int:
    """Return the number of a trial. Raises ``UserError`` if what was given is none."""
    return _whole(given, f"no trial is called {given!r}", "give what ask() returned, or its number")


def number_of_step(given: Any) -> int:
    """Return the number of a step. Raises ``UserError`` if what was given is none."""
    return _whole(
        given, f"a step is a whole number, and not {given!r}", "write, for example, step=3"
    )


def _whole(given: Any, otherwise: str, hint: str) -> int:
    if isinstance(given, bool) or not hasattr(given, "__index__"):
        raise UserError(otherwise, hint=hint)
    return operator.index(given)


def _is_finite(number: Any) -> bool:
    return isinstance(number, int | float) and -math.inf < number < math.inf


def same_values(one: Dimension, other: Dimension) -> bool:
    """Whether two parameters are one in a file, where tuples are lists."""
    if repr(one) == repr(other):
        return True
    return json.dumps(as_json({"x": one})) == json.dumps(as_json({"x": other}))


def warn_of_unused(trial: StudyTrial) -> None:
    """Warn of parameters that were enqueued for a trial and that it never suggested."""
    names = [name for name in trial.fixed if name not in trial.values]
    if names:
        were, them = ("was", "it") if len(names) == 1 else ("were", "them")
        warn(
            f"{', '.join(names)} {were} enqueued for trial {trial.id}, and the trial never "
            f"suggested {them}"
        )
