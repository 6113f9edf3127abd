"""The training service ``local``: trials as processes of this machine."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from dispatcher.experiment.fields import Count, Section, Switch, Text, choice_reader

ReuseMode = Literal["none", "forked", "inProcess"]
_read_mode_word = choice_reader("none", "forked", "inProcess")


def _read_reuse_mode(value: object) -> object:
    """NNI knows true and false only; true is the mode that isolates trials from one another."""
    if isinstance(value, str) and value.lower() in ("true", "yes", "on"):
        return "forked"
    if isinstance(value, str) and value.lower() in ("false", "no", "off"):
        return "none"
    if isinstance(value, bool):
        return "forked" if value else "none"
    return _read_mode_word(value)


class LocalServiceConfig(Section):
    """Run trials on this machine, below an agent process of the experiment."""

    platform: Annotated[Literal["local"], Field(description="Where trials run: `local`.")] = "local"
    reuse_mode: Annotated[
        Annotated[
            ReuseMode,
            BeforeValidator(_read_reuse_mode),
            WithJsonSchema(
                {"anyOf": [{"enum": ["none", "forked", "inProcess"]}, {"type": "boolean"}]}
            ),
        ],
        Field(
            description="`none`: a fresh process for each trial; `forked`: forked from a server "
            "that has imported `preload`; `inProcess`: functions one after another inside a "
            "worker (needs `trialFunction`). `true` means `forked`, `false` means `none`."
        ),
    ] = "none"
    preload: Annotated[
        tuple[Text, ...],
        Field(description="Modules that warm workers import once, such as `torch`."),
    ] = ()
    slots: Annotated[
        Count | None,
        Field(description="Trials this machine may run at once; `trialConcurrency` if not given."),
    ] = None
    cpus_per_trial: Annotated[
        Count | None,
        Field(
            description="CPU cores of one trial, told to numerical libraries as their number of "
            "threads; not limited if not given."
        ),
    ] = None
    max_trials_per_worker: Annotated[
        Count | None,
        Field(description="Trials after which a warm worker is replaced; never if not given."),
    ] = None
    code_snapshot: Annotated[
        Switch,
        Field(
            description="Copy the code directory when the experiment starts, so that editing it "
            "changes nothing for trials to come."
        ),
    ] = False
