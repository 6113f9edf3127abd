"""The training service ``trainer``: trials in TrainJobs of Kubeflow Trainer v2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from dispatcher.experiment.fields import Section, choice_reader
from dispatcher.experiment.problems import Misfit
from dispatcher.platforms.kubernetes.section import KubernetesService, Name

if TYPE_CHECKING:
    from dispatcher.platforms.kubernetes.kind import AllocationKind

#: Kinds of runtimes: those of the whole cluster, and those of a namespace.
RuntimeKind = Literal["ClusterTrainingRuntime", "TrainingRuntime"]
_read_kind = choice_reader("ClusterTrainingRuntime", "TrainingRuntime")

#: Keys of pods that a TrainJob has no field for.
_OF_RUNTIMES = {
    "priority_class": "priorityClass",
    "image_pull_policy": "imagePullPolicy",
}

#: Further fields that a TrainJob can give its pods, and their container.
_PATCHED_IN_PODS = ("affinity", "schedulingGates", "securityContext")
_PATCHED_IN_CONTAINERS = ("securityContext",)


class RuntimeRef(Section):
    """The training runtime of which TrainJobs are made; its name alone, if it is the cluster's."""

    name: Annotated[Name, Field(description="Name of the runtime, as `torch-distributed`.")]
    kind: Annotated[
        Annotated[RuntimeKind, BeforeValidator(_read_kind)],
        Field(
            description="Kind of it: `ClusterTrainingRuntime`, or `TrainingRuntime` for one of the "
            "namespace."
        ),
    ] = "ClusterTrainingRuntime"

    @classmethod
    def read_short_form(cls, value: Any) -> Any:
        """Read a name alone."""
        return {"name": value} if isinstance(value, str) else value


class TrainerSection(KubernetesService):
    """Run trials in TrainJobs of Kubeflow Trainer v2, each with an agent that takes many trials."""

    other_names: ClassVar[Mapping[str, str]] = {
        **KubernetesService.other_names,
        "runtime": "runtimeRef",
    }

    platform: Annotated[
        Annotated[Literal["trainer"], BeforeValidator(choice_reader("trainer"))],
        Field(description="Kind of place where trials run: `trainer`."),
    ]
    runtime_ref: Annotated[
        RuntimeRef,
        Field(description="Training runtime of the cluster, or of the namespace: its name."),
    ]

    @classmethod
    def allocation_kinds(cls) -> Sequence[AllocationKind]:
        """See :meth:`KubernetesService.allocation_kinds`."""
        from dispatcher.platforms.trainer.kind import TRAIN_JOB

        return (TRAIN_JOB,)

    @model_validator(mode="after")
    def _fit_patches(self) -> Self:
        for field, key in _OF_RUNTIMES.items():
            if getattr(self, field) is not None:
                text = f"has {key!r}, for which a TrainJob has no field"
                raise Misfit(text, at=(key,), hint="have it in the training runtime")
        for key, given, known in (
            ("pod", self.pod, _PATCHED_IN_PODS),
            ("container", self.container, _PATCHED_IN_CONTAINERS),
        ):
            for field in given:
                if field not in known:
                    text = f"has '{key}.{field}', for which a TrainJob has no field"
                    hint = f"have it in the training runtime; here is {', '.join(known)}"
                    raise Misfit(text, at=(key, field), hint=hint)
        return self
