"""The training service ``adaptdl``: trials in AdaptDLJobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from dispatcher.experiment.fields import Count, Switch, choice_reader
from dispatcher.experiment.problems import Misfit
from dispatcher.platforms.kubernetes.section import KubernetesService, Name, Quantity

if TYPE_CHECKING:
    from dispatcher.platforms.kubernetes.kind import AllocationKind

SHARED_MEMORY = "/dev/shm"  # noqa: S108 - of a pod


class AdaptdlSection(KubernetesService):
    """Run trials in AdaptDLJobs, with an agent in each, whose pods AdaptDL moves and rescales."""

    platform: Annotated[
        Annotated[Literal["adaptdl"], BeforeValidator(choice_reader("adaptdl"))],
        Field(description="Kind of place where trials run: `adaptdl`."),
    ]
    queue: Annotated[
        Name | None, Field(description="Not to be given: Kueue knows no AdaptDLJobs.")
    ] = None
    shared_memory: Annotated[
        Quantity | None,
        Field(description="Not to be given: AdaptDL mounts a `/dev/shm` of its own, unbounded."),
    ] = None
    min_replicas: Annotated[
        Count | None,
        Field(
            description="Fewest pods of a trial, where it has several (`trialNodes`, which is the "
            "most): AdaptDL gives it as many as it likes. As many as `trialNodes` if not given."
        ),
    ] = None
    preemptible: Annotated[
        Switch,
        Field(
            description="Whether AdaptDL may stop pods and start them anew, on other nodes or as "
            "many others: what runs there hands over, and is tried again."
        ),
    ] = True

    @classmethod
    def allocation_kinds(cls) -> Sequence[AllocationKind]:
        """See :meth:`KubernetesService.allocation_kinds`."""
        from dispatcher.platforms.adaptdl.jobs import ADAPTDL_JOB

        return (ADAPTDL_JOB,)

    @model_validator(mode="after")
    def _fit_adaptdl(self) -> Self:
        if self.queue is not None:
            raise Misfit(
                "has a 'queue', and Kueue knows no AdaptDLJobs",
                at=("queue",),
                hint="leave it out: AdaptDL itself decides when a job may start",
            )
        text, hint = "has what AdaptDL itself mounts in its pods, at /dev/shm", "leave it out"
        if self.shared_memory is not None:
            raise Misfit(text, at=("sharedMemory",), hint=hint)
        for index, volume in enumerate(self.volumes):
            if volume.at == SHARED_MEMORY:
                raise Misfit(text, at=("volumes", index, "at"), hint=hint)
        return self
