"""The smaller sections of an experiment file: weights, channel, leases, limits."""

from __future__ import annotations

import ipaddress
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from dispatcher.experiment.fields import (
    Count,
    CountOrZero,
    Duration,
    Section,
    Size,
    Switch,
    Text,
    choice_reader,
    fold_word,
)
from dispatcher.experiment.problems import Misfit
from dispatcher.experiment.sizes import format_size

Keep = Literal["all", "best", "ancestors-of-live", "last-generations"]
_COUNTED = {"best": "best", "lastgenerations": "last-generations"}


class WeightKeysConfig(Section):
    """The keys of a proposal that carry paths of weights."""

    save: Annotated[Text, Field(description="Key of the path a trial saves to.")] = "save_path"
    restore: Annotated[Text, Field(description="Key of the path a trial restores from.")] = (
        "restore_path"
    )

    @model_validator(mode="after")
    def _differ(self) -> Self:
        if self.save == self.restore:
            raise Misfit(
                f"names {self.save!r} twice: save and restore need keys of their own",
                at=("restore",),
            )
        return self


class RetentionConfig(Section):
    """The weights to keep. What a live, queued or blocked descendant or a pin needs stays, too."""

    keep: Annotated[
        Annotated[
            Keep,
            BeforeValidator(choice_reader("all", "best", "ancestors-of-live", "last-generations")),
        ],
        Field(
            description="`all`; `best` and `last-generations` (with `count`, or written "
            "`keep: {best: 5}`); `ancestors-of-live`."
        ),
    ] = "all"
    count: Annotated[
        Count | None,
        Field(description="How many of the best trials, or of the last generations."),
    ] = None

    @classmethod
    def read_short_form(cls, value: Any) -> Any:
        """Read ``all``, ``{keep: {best: 5}}`` and ``{best: 5}`` as ``{keep, count}``."""
        if isinstance(value, str):
            return {"keep": value}
        if not isinstance(value, dict):
            return value
        inner = value.get("keep", value if len(value) == 1 else None)
        if isinstance(inner, dict) and len(inner) == 1:
            ((word, count),) = inner.items()
            if isinstance(word, str) and fold_word(word) in _COUNTED:
                return {"keep": _COUNTED[fold_word(word)], "count": count}
        return value

    @model_validator(mode="after")
    def _count_fits(self) -> Self:
        counted = self.keep in ("best", "last-generations")
        if counted and self.count is None:
            raise Misfit("needs a count", at=("keep",), hint=f"write 'keep: {{{self.keep}: 5}}'")
        if not counted and self.count is not None:
            raise Misfit(f"keeps {self.keep!r}, so 'count' says nothing", at=("count",))
        return self


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
        if self.transport == "tcp" and not _is_loopback(self.host) and not self.beyond_this_machine:
            raise Misfit(
                f"listens on {self.host}, which other machines can reach",
                at=("host",),
                hint="if that is meant, write 'beyondThisMachine: true' as well; the socket "
                "admits the keys of this experiment only",
            )
        return self


def _is_loopback(host: str) -> bool:
    """Whether a host is this machine alone. Names but ``localhost`` are not looked up."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


class LeasesConfig(Section):
    """The silences after which a peer counts as suspect or lost."""

    alive: Annotated[Duration, Field(description="Heartbeat period.")] = 5.0
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
