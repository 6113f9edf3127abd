"""Effects of events, a module per family, each with its part of the table. A function is called
with a legal event only."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from dispatcher.core.actions import Action
from dispatcher.core.model import State

#: Changes the state and adds what follows to the actions. False: the event does not count after
#: all, and nothing has changed.
Effect: TypeAlias = Callable[[State, Any, list[Action]], bool | None]

#: The effect of each kind of event.
Effects: TypeAlias = Mapping[type, Effect]


def quiet(change: Callable[[State, Any], bool | None]) -> Effect:
    """The effect of an event from which no action follows by itself."""

    def effect(state: State, event: Any, _out: list[Action]) -> bool | None:
        return change(state, event)

    return effect
