"""The dialect of trials: what their code expects around it, beyond a session of ours.

A dialect of another product derives from :class:`TrialDialect`. Runners know no other by name:
:mod:`trial_runtime.agent.dialects` picks one for an experiment.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import TYPE_CHECKING, Protocol

from trial_runtime.agent.attempt import Attempt
from trial_runtime.agent.base.loop import Timers
from trial_runtime.agent.config import AgentConfig

if TYPE_CHECKING:
    from trial_runtime.agent.link.reports import Reports


class Overheard(Protocol):
    """The reports of trials that come by another way than their connection to the agent."""

    def taps(self, attempt: Attempt) -> dict[str, Callable[[bytes], None]]:
        """Takers of the bytes that an attempt is going to print, by stream."""
        ...

    def follow(self, attempt: Attempt) -> None:
        """Begin with an attempt, whose process has just started."""
        ...

    def last(self, attempt: Attempt) -> None:
        """Take the rest of an attempt whose process is gone."""
        ...

    def forget(self, attempt: Attempt) -> None:
        """Drop an attempt that is over, though it may never have begun."""
        ...


class NothingOverheard:
    """No such reports: all of them come through the agent's socket."""

    def taps(self, attempt: Attempt) -> dict[str, Callable[[bytes], None]]:
        """Nothing takes them."""
        return {}

    def follow(self, attempt: Attempt) -> None:
        """Do nothing."""

    def last(self, attempt: Attempt) -> None:
        """Do nothing."""

    def forget(self, attempt: Attempt) -> None:
        """Do nothing."""


class TrialDialect:
    """Our own dialect: a session says all, so there is nothing to add.

    Args:
        config: of the agent.
        rank: of the node, where a trial has several.
    """

    #: Whether a command finds the folder of its checkpoints in a variable.
    names_checkpoints = True

    def __init__(self, config: AgentConfig, rank: int = 0) -> None:
        self._config = config
        self.rank = rank

    def shared_variables(self) -> dict[str, str]:
        """The variables that all trials of the experiment have in common."""
        return {}

    def module_folders(self) -> tuple[str, ...]:
        """Folders of modules that trials can import, after those on their own path."""
        return ()

    @property
    def own_names(self) -> tuple[str, ...]:
        """Names in an attempt's own working directory that lead to nothing of the code."""
        return ()

    def arguments(self, attempt: Attempt) -> list[str]:
        """The arguments of a command, beyond those that it has.

        Raises:
            CannotStart: there can be none of these parameters.
        """
        return []

    def furnish(self, attempt: Attempt, environment: MutableMapping[str, str]) -> None:
        """Lay an attempt's files down, and set the variables of its process.

        Raises:
            CannotStart: the attempt's folder cannot be written to.
        """

    def furnish_session(self, attempt: Attempt) -> None:
        """The same for a process that is there before its trial: its session brings the variables.

        Raises:
            CannotStart: the attempt's folder cannot be written to.
        """

    def overheard(self, reports: Reports, timers: Timers) -> Overheard:
        """The reports that trials leave elsewhere, to be passed on to ``reports``."""
        return NothingOverheard()
