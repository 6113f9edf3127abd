"""The training service ``slurm``: trials in jobs of a Slurm cluster."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from dispatcher.experiment.addresses import parts_of_login
from dispatcher.experiment.fields import (
    Count,
    Text,
    VariableName,
    VariableText,
)
from dispatcher.experiment.problems import Misfit
from dispatcher.platforms.allocations.section import Line, PlaceMemory, WallTime
from dispatcher.platforms.clusters.section import ClusterService
from dispatcher.platforms.logins.section import FolderThere, ReachedConfig
from dispatcher.platforms.slurm.options import Options


def _one_or_more(value: object) -> object:
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list | tuple):
        raise ValueError(f"must be a text or a list of them, not {value!r}")
    return value


def _check_word(text: str) -> str:
    if not text.isprintable() or any(character.isspace() for character in text):
        raise ValueError(f"must be a name without blanks, not {text!r}")
    return text


def _check_shell_name(name: str) -> str:
    if not _SHELL_NAME.fullmatch(name):
        raise ValueError(f"has {name!r}, which is no name that a shell gives a variable")
    return name


def _check_commands(text: str) -> str:
    if "\0" in text:
        raise ValueError("holds a NUL character, which no command can")
    return text


_SHELL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_WORDS_SCHEMA: dict[str, Any] = {
    "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]
}

Word = Annotated[Text, AfterValidator(_check_word)]
OneOrMore = Annotated[
    tuple[Word, ...], BeforeValidator(_one_or_more), WithJsonSchema(_WORDS_SCHEMA)
]


def wall_minutes(wall_time: float) -> int:
    """The limit of a job in minutes, the least that Slurm knows."""
    return math.ceil(wall_time / 60)


class LoginNodeConfig(ReachedConfig):
    """The machine that has Slurm's commands, where this one has them not."""

    command_folder: Annotated[
        FolderThere | None,
        Field(
            description="Folder there that has Slurm's commands, such as `/opt/slurm/bin`; they "
            "are in the PATH of a login by SSH if not given."
        ),
    ] = None

    @classmethod
    def read_short_form(cls, value: Any) -> Any:
        """Read ``user@host:port``."""
        return parts_of_login(value)


class SlurmServiceConfig(ClusterService):
    """Run trials in jobs of a Slurm cluster, below an agent in each."""

    platform: Annotated[
        Literal["slurm"], Field(description="Kind of place where trials run: `slurm`.")
    ]
    login: Annotated[
        LoginNodeConfig | None,
        Field(
            description="Login node on which Slurm's commands are run by SSH: `user@host:port`, or "
            "keys; this machine if not given. `sharedFolder` is mounted here, too."
        ),
    ] = None
    partition: Annotated[
        OneOrMore,
        Field(
            description="Partition, or several, of which a job takes the first that has room; the "
            "cluster's own choice if not given."
        ),
    ] = ()
    account: Annotated[Word | None, Field(description="Account that jobs are charged to.")] = None
    qos: Annotated[Word | None, Field(description="Quality of service of jobs.")] = None
    constraint: Annotated[
        Line | None, Field(description="Features that nodes must have, such as `a100&nvlink`.")
    ] = None
    reservation: Annotated[Word | None, Field(description="Reservation to use.")] = None
    gres: Annotated[
        OneOrMore, Field(description="Generic resources of a job, such as `gpu:a100:2`.")
    ] = ()
    cpus: Annotated[
        Count | None, Field(description="CPUs of a job; the cluster's own choice if not given.")
    ] = None
    memory: Annotated[
        PlaceMemory | None,
        Field(description="Memory of a job; the cluster's own choice if not given."),
    ] = None
    wall_time: Annotated[
        WallTime | None,
        Field(
            description="When a job has to end, in whole minutes; the next one is asked for then. "
            "The partition's own limit if not given."
        ),
    ] = None
    options: Annotated[
        Options,
        Field(
            description="Any other long option of `sbatch`, such as `{exclusive: true, licenses: "
            '"solver:1"}`.'
        ),
    ] = Field(default_factory=dict)
    python: Annotated[
        Line | None,
        Field(
            description="Python of the nodes, at least 3.9, with what trials import; the one that "
            "bequeath runs with if not given."
        ),
    ] = None
    prolog: Annotated[
        Annotated[Text, AfterValidator(_check_commands)] | None,
        Field(
            description="Commands that a login bash runs in a job before the agent starts, such as "
            "`module load …`; trials inherit what it exports. A failing prolog is reported, and "
            "the agent starts anyway."
        ),
    ] = None
    environment: Annotated[
        dict[Annotated[VariableName, AfterValidator(_check_shell_name)], VariableText],
        Field(
            description="Environment variables in a job, beside `trialEnvironment`; `env:NAME` and "
            "`file:PATH` are resolved on this machine."
        ),
    ] = Field(default_factory=dict)

    @property
    def python_there(self) -> str:
        """See :attr:`ClusterService.python_there`."""
        return self.python or super().python_there

    @property
    def gpus_asked(self) -> float:
        """See :attr:`ClusterService.gpus_asked`: what `gres` says, such as `gpu:a100:2`."""
        asked = [each.split(":") for each in self.gres]
        last = [words[-1] if len(words) > 1 else "1" for words in asked if words[0] == "gpu"]
        return float(sum(int(word) if word.isdigit() else 1 for word in last))

    @property
    def wall_s(self) -> float | None:
        """How long a job has its place (seconds); None: for as long as its partition says."""
        return None if self.wall_time is None else 60.0 * wall_minutes(self.wall_time)

    @model_validator(mode="after")
    def _login_needs_a_share(self) -> Self:
        if self.login is not None and self.shared_folder is None:
            raise Misfit(
                "is missing: with a login node no job sees the folders of this machine",
                at=("sharedFolder",),
                hint="name a folder that this machine, the login node and the nodes have at the "
                "same path",
            )
        return self
