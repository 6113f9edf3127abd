"""The smaller sections of an experiment file: fetched files, channel, leases, limits."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from dispatcher.experiment.addresses import is_loopback
from dispatcher.experiment.fields import (
    Count,
    CountOrZero,
    Duration,
    Section,
    Size,
    Switch,
    Text,
    choice_reader,
)
from dispatcher.experiment.problems import Misfit
from dispatcher.experiment.quantities import format_size

#: All artefacts that one attempt may keep, see :mod:`trial_runtime.artefacts`.
MOST_FETCHED_BYTES = 256 << 20

_read_fetch_word = choice_reader("onEnd", "never")


def _read_when(value: object) -> object:
    """Read YAML's truth values, as people write them in place of a word."""
    if isinstance(value, bool):
        return "onEnd" if value else "never"
    return _read_fetch_word(value)


When = Annotated[Literal["onEnd", "never"], BeforeValidator(_read_when)]


class FetchConfig(Section):
    """Files of trials on other machines, brought into the experiment's folder in the background
    when an attempt has ended; `bequeath trial fetch` brings any at any time."""

    logs: Annotated[When, Field(description="Output of the trial: `onEnd` or `never`.")] = "onEnd"
    artefacts: Annotated[
        When, Field(description="Files that it kept with `save_artefact`: `onEnd` or `never`.")
    ] = "onEnd"
    work: Annotated[
        When,
        Field(description="All files that it made in its working directory: `onEnd` or `never`."),
    ] = "never"
    max_size: Annotated[
        Size, Field(description="Most bytes of one attempt; files that do not fit stay there.")
    ] = MOST_FETCHED_BYTES

    @classmethod
    def read_short_form(cls, value: Any) -> Any:
        """Read ``never`` and ``onEnd`` in place of the section."""
        if isinstance(value, str | bool):
            return {"logs": value, "artefacts": value}
        return value

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of files that are fetched at an attempt's end."""
        wanted = {"logs": self.logs, "artefacts": self.artefacts, "work": self.work}
        return tuple(kind for kind, when in wanted.items() if when == "onEnd")


class ChannelConfig(Section):
    """The ZeroMQ channel between the head, the tuner host and the agents."""

    transport: Annotated[
        Annotated[Literal["ipc", "tcp"], BeforeValidator(choice_reader("ipc", "tcp"))],
        Field(description="`ipc`: sockets in a private folder; `tcp`: with CURVE encryption."),
    ] = "ipc"
    host: Annotated[Text, Field(description="Address that `tcp` binds to.")] = "127.0.0.1"
    port: Annotated[
        Annotated[CountOrZero, Field(le=65535)],
        Field(description="Port that `tcp` binds to; 0 takes a free one."),
    ] = 0
    beyond_this_machine: Annotated[
        Switch,
        Field(
            description="Whether `host` may be an address that other machines can reach; "
            "one that they can is refused otherwise."
        ),
    ] = False

    @model_validator(mode="after")
    def _loopback_unless_told(self) -> Self:
        if self.transport == "tcp" and not is_loopback(self.host) and not self.beyond_this_machine:
            raise Misfit(
                f"listens on {self.host}, which other machines can reach",
                at=("host",),
                hint="if that is meant, write 'beyondThisMachine: true' as well; the socket "
                "admits the keys of this experiment only",
            )
        return self

    @property
    def listens_on(self) -> str:
        """The host on which the head listens for agents that come by TCP."""
        return self.host if self.transport == "tcp" else "127.0.0.1"


class LeasesConfig(Section):
    """The silences after which a peer counts as suspect or lost."""

    alive: Annotated[
        Duration,
        Field(
            description="The longest pause between two heartbeats of an agent. Up to 250 agents "
            "send one a second; more of them send fewer each."
        ),
    ] = 5.0
    suspect: Annotated[
        Duration, Field(description="Silence after which a peer is suspect, and gets a warning.")
    ] = 30.0
    lost: Annotated[
        Duration, Field(description="Silence after which a peer is given up and its work retried.")
    ] = 120.0

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if not self.alive < self.suspect < self.lost:
            raise Misfit(
                f"must grow from alive to suspect to lost, not {self.alive:g}, "
                f"{self.suspect:g}, {self.lost:g} seconds"
            )
        return self


#: Parameters travel in one message to the head and in one to an agent, each of at most 8 MiB,
#: other fields included.
MOST_PARAMETERS_BYTES = 4 << 20


def _fits_a_message(size: int) -> int:
    if size > MOST_PARAMETERS_BYTES:
        most = format_size(MOST_PARAMETERS_BYTES)
        raise ValueError(
            f"must be {most} at most, not {format_size(size)}: parameters travel in messages; keep "
            "large things in files and pass their paths"
        )
    return size


class LimitsConfig(Section):
    """The bounds at which bequeath refuses with a reason rather than filling up."""

    max_parameters_size: Annotated[
        Size,
        AfterValidator(_fits_a_message),
        Field(description="Largest set of parameters a tuner may return, encoded; 4mb at most."),
    ] = 1 << 20
    max_metric_size: Annotated[
        Size, Field(description="Largest single metric a trial may report, encoded.")
    ] = 64 << 10
    max_metrics_per_trial: Annotated[
        Count, Field(description="Metrics one attempt may report; more are refused.")
    ] = 100_000
    max_message_rate: Annotated[
        Count,
        Field(
            description="Messages a second that one attempt may send for long; a faster one is "
            "slowed down, and cut off if it does not heed that."
        ),
    ] = 20_000
    max_code_files: Annotated[
        Count, Field(description="Files and folders the code directory may hold.")
    ] = 2_000
    max_code_size: Annotated[Size, Field(description="Bytes the code directory may hold.")] = (
        300 << 20
    )
