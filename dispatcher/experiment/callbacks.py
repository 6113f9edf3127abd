"""The section ``callbacks``: functions and commands that are called when something has happened."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, model_validator

from dispatcher.experiment.fields import Command, Duration, FunctionName, ResolvedPath, Section
from dispatcher.experiment.problems import Misfit
from dispatcher.experiment.sink_base import SinkConfig

CALLBACKS = "callbacks"
"""The key, and the name in ``status``."""


class CallbackConfig(Section):
    """One callback. A text in place of the section is its `function`."""

    short_schema: ClassVar[Mapping[str, Any] | None] = {"type": "string", "pattern": ":"}

    function: Annotated[
        FunctionName | None,
        Field(
            description="Function of the code in `codeDirectory`, as `module:function`. It "
            "gets one mapping. Excludes `command`.",
            json_schema_extra={"examples": ["hooks:tell"]},
        ),
    ] = None
    command: Annotated[
        Command | None,
        Field(
            description="Program with its arguments, run in `codeDirectory` without a shell. "
            "It gets JSON on its standard input, and variables `BEQUEATH_EVENT…`. Excludes "
            "`function`."
        ),
    ] = None

    @classmethod
    def read_short_form(cls, value: Any) -> Any:
        """Read ``hooks:tell`` as ``{function: hooks:tell}``."""
        if isinstance(value, str) and ":" not in value:
            raise Misfit(
                f"must be written as 'module:function', not {value[:100]!r}",
                hint=f"a program is written as a section: {{command: {value[:100]}}}",
            )
        return {"function": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _is_one_thing(self) -> Self:
        if (self.function is None) == (self.command is None):
            raise ValueError("needs either 'function' or 'command'")
        if self.command is not None:
            _split(self.command)
        return self

    @property
    def argv(self) -> list[str]:
        """The program and its arguments; empty for a function."""
        return [] if self.command is None else _split(self.command)

    def __str__(self) -> str:
        return self.function or self.command or ""


def _split(command: str) -> list[str]:
    try:
        parts = shlex.split(command)
    except ValueError as error:
        raise Misfit(f"cannot be split into words: {error}", at=("command",)) from error
    if not parts:
        raise Misfit("names no program", at=("command",))
    return parts


class CallbacksConfig(SinkConfig):
    """Functions and commands that are called beside the search, which never waits for them."""

    # A sink of which there is one, and that drops nothing.
    name: ClassVar[None] = None  # type: ignore[misc, mutable-override]
    keep: ClassVar[None] = None  # type: ignore[misc, mutable-override]

    on_trial_end: Annotated[
        CallbackConfig | None,
        Field(description="Called when a trial that has run is over, once for all its attempts."),
    ] = None
    on_new_best: Annotated[
        CallbackConfig | None,
        Field(description="Called when such a trial is better than all before it."),
    ] = None
    on_experiment_end: Annotated[
        CallbackConfig | None,
        Field(description="Called when the experiment has completed, failed or was stopped."),
    ] = None
    code_directory: Annotated[
        ResolvedPath | None,
        Field(
            description="Folder of the functions and programs, in which they run; "
            "`trialCodeDirectory` if not given."
        ),
    ] = None
    time_limit: Annotated[
        Duration, Field(description="Time for one call, after which its process is ended.")
    ] = 60.0

    @property
    def word(self) -> str:
        """The word for its kind."""
        return CALLBACKS

    @property
    def given(self) -> dict[str, CallbackConfig]:
        """The callbacks that there are, by their keys."""
        each = {
            "onTrialEnd": self.on_trial_end,
            "onNewBest": self.on_new_best,
            "onExperimentEnd": self.on_experiment_end,
        }
        return {key: one for key, one in each.items() if one is not None}


def path_with(folder: Path) -> str:
    """The variable ``PATH`` by which programs of callbacks are found: ours, then the code's."""
    return os.pathsep.join((os.environ.get("PATH", os.defpath), str(folder)))
