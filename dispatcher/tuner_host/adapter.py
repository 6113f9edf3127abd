"""Adapters: what the tuner host does otherwise for tuners that are written for another framework.

A plain tuner has :data:`PLAIN`. Another adapter is named in the configuration, by the dialect of
the experiment file, see :mod:`dispatcher.experiment.dialects`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from dispatcher.errors import InternalError
from dispatcher.ports import AssessorInput
from dispatcher.tuner_host.config import TunerHostConfig
from dispatcher.tuner_host.request import Request

Propose = Callable[[Request, Any], None]
"""Takes the answer to a request that waits for one, in any thread."""


def _nothing(value: object) -> None:
    """Do nothing, where nobody listens."""


@dataclass(frozen=True, slots=True)
class HostServices:
    """Lets an adapted tuner speak to the host, from any thread.

    Attributes:
        note: takes a text that a user should read.
        stop_trial: ends a trial early, once the tuner is where it was before a restart.
    """

    note: Callable[[str], None] = _nothing
    stop_trial: Callable[[int], None] = _nothing


class Advisor(Protocol):
    """A tuner that sees intermediate results and may end trials, beside a tuner's own methods.

    One thread makes all calls of it.
    """

    def intermediate_result(
        self, parameter_id: int, value: Any, attempt: int = 0, seq: int = 0
    ) -> None:
        """Hand over an intermediate result of a running trial.

        Args:
            parameter_id: the trial, by the request's number.
            value: decoded JSON.
            attempt: the attempt that reported it.
            seq: number of the metric within the attempt.
        """

    def recall(self, one: AssessorInput) -> None:
        """Repeat a metric that a trial reported before this process began."""

    def take_back(self, parameter_id: int) -> None:
        """Keep the trial of a repeated request, which had another answer, for the next one."""

    def end_again(self) -> None:
        """End the running trials that it wanted ended while its past was repeated."""


class LaterAnswers(Protocol):
    """Callbacks by which a tuner answers a request that it refused before. Any thread."""

    def begin(self, trial: int) -> Any:
        """Make a callback for one call of the tuner."""

    def end(self, request: Request, *, refused: bool) -> tuple[bool, Any] | None:
        """Note the end of a call; return whether a callback has answered meanwhile, and with what.

        None if the call was ``refused`` while a callback is kept: the request waits for it now.
        """

    def goes_on_waiting(self, request: Request) -> bool:
        """Whether a repeated call has asked for this trial, and its callback is still held."""

    def is_refused(self, trial: int) -> bool:
        """Whether the tuner may not be asked again, though it keeps the callback."""

    def waiting(self) -> list[int]:
        """Return the requests that wait for a callback."""

    def give_up(self, trial: int | None = None) -> list[Request]:
        """Take one cancelled request, or all of them, out of the waiting ones; return them."""


class TunerAdapter(Protocol):
    """Serves tuners that are written for another framework.

    Attributes:
        any_keys: whether parameters may have keys that are no text.
    """

    any_keys: bool

    def make_importable(self) -> None:
        """Put the framework's modules on the module path."""

    def furnish(self, config: TunerHostConfig) -> None:
        """Prepare the process, before any code of the author's is imported."""

    def advisor(self, tuner: Any, services: HostServices) -> Advisor | None:
        """Return a tuner in place of an object of another shape; None if it is a tuner as it is.

        Raises:
            TunerCodeError: it cannot run here.
        """

    def is_inherited(self, method: Callable[..., Any] | None) -> bool:
        """Whether a method is that of the framework's base class, not the author's own."""

    def later_answers(self, note: Callable[[str], None], propose: Propose) -> LaterAnswers | None:
        """Return what makes callbacks for tuners that take some; None if there are none.

        Args:
            note: takes a text for the user.
            propose: takes the answer to a request that waits.
        """


class _Plain:
    """Changes nothing."""

    any_keys = False

    def make_importable(self) -> None:
        pass

    def furnish(self, config: TunerHostConfig) -> None:
        pass

    def advisor(self, tuner: Any, services: HostServices) -> Advisor | None:
        return None

    def is_inherited(self, method: Callable[..., Any] | None) -> bool:
        return False

    def later_answers(self, note: Callable[[str], None], propose: Propose) -> LaterAnswers | None:
        return None


PLAIN: TunerAdapter = _Plain()


def adapter_of(config: TunerHostConfig) -> TunerAdapter:
    """Return the adapter that a configuration names.

    Raises:
        InternalError: it is not there.
    """
    if not config.adapter:
        return PLAIN
    module, _, name = config.adapter.partition(":")
    try:
        adapter: TunerAdapter = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise InternalError(f"the adapter {config.adapter} is not there: {error}") from error
    return adapter
