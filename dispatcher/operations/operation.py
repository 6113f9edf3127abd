"""One row of the table: what an operation is called, takes, answers, and how it is reached."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from dispatcher.errors import ExperimentNotFound, UserError
from dispatcher.experiments.find import Purpose
from dispatcher.experiments.handle import ExperimentHandle

if TYPE_CHECKING:
    from dispatcher.inference.models import Models


class Scope(StrEnum):
    """The right that an operation needs."""

    READ = "read"
    LOGS = (
        "logs"  # reads what trials wrote: a link that is given away lacks it unless it is asked for
    )
    CHANGE = "change"


class Subject(StrEnum):
    """The thing that an operation is about."""

    MACHINE = "machine"
    EXPERIMENT = "experiment"
    TRIAL = "trial"


class Arguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of all arguments: those of a query or a body, without experiment and trial."""


class NoChoice(Arguments, frozen=True):
    """No arguments."""


A = TypeVar("A", bound=Arguments)
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Operation(Generic[A, R]):
    """A row of the table.

    Attributes:
        name: the name for all ways in; its words are joined by ``-`` in the description of routes.
        summary: one line.
        subject: what it is about.
        scope: the right that it needs.
        purpose: which experiments it can be about.
        arguments: their type; its constraints are checked for all ways in.
        answer: the type of the answer, whose fields are the JSON: some may be added, none goes.
        call: ``module:function`` below this package, imported when it is called.
        verbs: commands of the command line.
        python: how it is called from Python.
        route: method and path below ``/api/v1``; empty if there is none.
        why_not: why there is no route, or no command.
        repeatable: whether twice is as good as once.
    """

    name: str
    summary: str
    subject: Subject
    scope: Scope
    purpose: Purpose
    arguments: type[A]
    answer: type[R]
    call: str
    verbs: tuple[str, ...]
    python: str = "Experiment.perform"
    route: str = ""
    why_not: str = ""
    repeatable: bool = False

    @property
    def method(self) -> str:
        """The method of its route."""
        return self.route.partition(" ")[0]

    @property
    def path(self) -> str:
        """The path of its route."""
        return self.route.partition(" ")[2]

    @property
    def ident(self) -> str:
        """The name without spaces."""
        return self.name.replace(" ", "-")


def _agree(question: str) -> None:
    """Agree to all questions: whoever calls from a program has decided already."""


def _keep_quiet(part: Any) -> None:
    """Drop what only somebody who watches wants."""


@dataclass(frozen=True, kw_only=True)
class Context:
    """The one who asks: where experiments are looked for, and what is done with what comes beside
    an answer. One for a command or a connection; any thread, one call at a time."""

    who: str = "Python"  #: for reasons on record
    base: Path | None = None  #: look below this folder only
    paths: bool = True  #: whether an experiment may be named by its folder; not over a network
    confirm: Callable[[str], None] = _agree  #: gets a question; raises if the answer is no
    note: Callable[[str], None] = _keep_quiet  #: gets a sentence that belongs to no answer
    part: Callable[[Any], None] = _keep_quiet  #: gets parts of an answer as they come
    models: Models | None = None  #: asks models, and keeps one warm; None: each is asked anew
    model_memory: int = 0  #: bytes that a model may have; 0: half of the machine's
    _handles: dict[tuple[str | None, Purpose], ExperimentHandle] = field(default_factory=dict)

    def handle(self, name: str | None, purpose: Purpose = Purpose.READ) -> ExperimentHandle:
        """Find the experiment that a name means; once for a name and purpose.

        Raises:
            ExperimentNotFound: it is a path, and paths are no names here.
            DispatcherError: as of :func:`dispatcher.experiments.find.find`.
        """
        if name is not None and not self.paths and (os.sep in name or name in (".", "..")):
            raise ExperimentNotFound(
                f"no experiment goes by {name!r}", hint="name it by its id, not by its folder"
            )
        key = (name, purpose)
        if key not in self._handles:
            self._handles[key] = ExperimentHandle.find(name, self.base, purpose)
        return self._handles[key]


@dataclass(frozen=True, slots=True)
class Call:
    """One call of an operation: by whom, and about what."""

    context: Context
    purpose: Purpose
    name: str | None = None
    number: int | None = None

    @property
    def handle(self) -> ExperimentHandle:
        """The experiment."""
        return self.context.handle(self.name, self.purpose)

    @property
    def trial(self) -> int:
        """The trial, of an operation that is about one."""
        assert self.number is not None
        return self.number


def perform(
    operation: Operation[A, R],
    context: Context,
    arguments: A | None = None,
    *,
    experiment: str | None = None,
    trial: int | None = None,
) -> R:
    """Carry an operation out.

    Args:
        operation: a row of the table.
        context: who asks.
        arguments: of the operation's own type; None: the usual ones.
        experiment: id, its beginning, name or folder; None: the one that a command without a name
            means.
        trial: its number, where it is about one.

    Raises:
        DispatcherError: it cannot be done; :mod:`dispatcher.operations.faults` has their kinds.
    """
    if operation.subject is Subject.TRIAL and trial is None:
        raise UserError(
            f"{operation.name!r} is about a trial, and none is named", hint="name one: trial=7"
        )
    module, _, function = operation.call.partition(":")
    act = getattr(importlib.import_module(f"dispatcher.operations.{module}"), function)
    given = operation.arguments() if arguments is None else arguments
    answer: R = act(Call(context, operation.purpose, experiment, trial), given)
    return answer


def arguments_of(operation: Operation[A, R], values: dict[str, Any]) -> A:
    """Read arguments that came from outside as plain values, as of JSON.

    Raises:
        UserError: one is unknown, missing, of another type or beyond a bound.
    """
    try:
        return msgspec.convert(values, operation.arguments)
    except msgspec.ValidationError as error:
        known = ", ".join(operation.arguments.__struct_fields__) or "none"
        raise UserError(
            f"{operation.name!r} cannot take this: {error}", hint=f"its arguments: {known}"
        ) from error
