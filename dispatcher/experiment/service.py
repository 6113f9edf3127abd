"""The section that all training services share: how trials run below an agent, on which workers."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Annotated, Literal, NamedTuple

from pydantic import BeforeValidator, Field, WithJsonSchema

from dispatcher.experiment.fields import Count, Section, Switch, Text, choice_reader
from dispatcher.experiment.needs import OfferedResources, TrialNeeds

LONGEST_NAME = 40
"""Bound for a worker's name: sockets are named after it, and their paths are short."""

TUNER = "tuner"
"""A peer of the head that is no worker: its keys and its socket are called so."""

NAME = re.compile(rf"[A-Za-z0-9_][A-Za-z0-9._-]{{0,{LONGEST_NAME + 9}}}")

LOCAL = "local"
"""The worker of this machine."""

TAKEN = (LOCAL, TUNER)
"""Names that no other worker may have."""


class PlannedWorker(NamedTuple):
    """One worker.

    Attributes:
        name: that of the worker.
        slots: trials that it may run at once.
        part: its own section of the file: that of its machine, or that of the whole service, if it
            is the only worker.
        slots_given: whether the file or the platform says how many; else they are those of the
            experiment, and follow it when it is changed.
        elastic: whether it is there only while there is work for it.
        address: of this machine, at which it reaches the head by itself; None: it does not.
    """

    name: str
    slots: int
    part: Section
    slots_given: bool = True
    elastic: bool = False
    address: str | None = None


def distinct_names(wanted: Sequence[str], taken: Collection[str] = ()) -> list[str]:
    """Return a name for each worker: as wanted, but safe in file names and distinct.

    No name is one of ``taken``. The same list gives the same names.
    """
    names: dict[str, None] = {}
    last: dict[str, int] = {}
    for each in wanted:
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", each).strip("-.")
        base = plain[:LONGEST_NAME] or "machine"
        name, number = base, last.get(base, 1)
        while name in names or name in taken:
            number += 1
            name = f"{base}-{number}"
        names[name] = None
        last[base] = number
    return list(names)


ReuseMode = Literal["none", "forked", "inProcess"]
_read_mode_word = choice_reader("none", "forked", "inProcess")


def _read_reuse_mode(value: object) -> object:
    """Read NNI's true and false; true is the mode that isolates trials from one another."""
    if isinstance(value, str) and value.lower() in ("true", "yes", "on"):
        return "forked"
    if isinstance(value, str) and value.lower() in ("false", "no", "off"):
        return "none"
    if isinstance(value, bool):
        return "forked" if value else "none"
    return _read_mode_word(value)


class ServiceConfig(OfferedResources, TrialNeeds):
    """Run trials below an agent process of the experiment."""

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
        Field(description="Trials a machine may run at once; `trialConcurrency` if not given."),
    ] = None
    cpus_per_trial: Annotated[
        Count | None,
        Field(
            description="CPU cores of one trial, given to numerical libraries as their number of "
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

    def planned(self, usual: int, taken: Collection[str]) -> tuple[PlannedWorker, ...]:
        """Return the workers: one, named after the platform, unless a service overrides this.

        Args:
            usual: slots of a worker without a number of its own in the file.
            taken: names of other workers.
        """
        (name,) = distinct_names([str(getattr(self, "platform", "worker"))], taken)
        return (PlannedWorker(name, self.slots or usual, self),)

    @property
    def trials_per_place(self) -> int:
        """How many trials may begin in the place that a worker has before it gets another one; 0:
        any number."""
        return 0

    @property
    def wall_s(self) -> float | None:
        """How long a worker has its place before it is taken back (seconds); None: for as long as
        it likes, or that is not known. A file whose trials may take longer is refused."""
        return None
