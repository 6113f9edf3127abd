"""The training service ``aiplatform``: how the file describes the jobs in which trials run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, NamedTuple, Self

from pydantic import BeforeValidator, Field, model_validator

from dispatcher.experiment.fields import choice_reader
from dispatcher.experiment.problems import Misfit
from dispatcher.platforms.google_cloud.section import BucketPath, GoogleService, Machine


class TierMachine(NamedTuple):
    """The machine that a tier stands for, with its GPU; no count: it has none."""

    machine: str
    accelerator: str = ""
    gpus: int = 0


#: Tiers of one machine.
TIERS = {
    "BASIC": TierMachine("n1-standard-4"),
    "BASIC_GPU": TierMachine("n1-standard-8", "NVIDIA_TESLA_K80", 1),
}

#: Tiers that nothing here is like, why, and what to write.
_OTHER_TIERS = {
    "STANDARD_1": (
        "is a master with four workers and three parameter servers, and a worker here is one job",
        "write 'masterType: n1-highcpu-8' and 'allocations: {max: 5}'",
    ),
    "PREMIUM_1": (
        "is a master with 19 workers and 11 parameter servers, and a worker here is one job",
        "write 'masterType: n1-highcpu-16' and 'allocations: {max: 20}'",
    ),
    "BASIC_TPU": (
        "has its TPU in a machine of another kind, in which no agent can run",
        "write 'masterType' and 'acceleratorType', with a GPU",
    ),
}

_INPUT = ("bequeath writes it", "write its fields beside 'platform'")
_ROLES = ("each worker is a job of its own", "write 'allocations: {max: N}', or 'trialNodes: N'")
_RUNTIME = (
    "its runtimes have Python 3.7 at most, and agents need 3.9",
    "write 'image: REGISTRY/NAME:TAG', with your package in the image",
)
_COMMAND = ("jobs run agents", "write 'trialCommand' beside 'trainingService'")


class AiTrainingSection(GoogleService):
    """Run trials in jobs of AI Platform Training, each with an agent that takes many trials."""

    refused: ClassVar[Mapping[str, tuple[str, str]]] = {
        **dict.fromkeys(("trainingInput", "masterConfig", "scheduling"), _INPUT),
        **{
            f"{role}{part}": _ROLES
            for role in ("worker", "parameterServer", "evaluator")
            for part in ("Type", "Count", "Config")
        },
        **dict.fromkeys(
            ("packageUris", "pythonModule", "runtimeVersion", "pythonVersion"), _RUNTIME
        ),
        **dict.fromkeys(("args", "containerArgs", "containerCommand"), _COMMAND),
        "hyperparameters": (
            "it describes a search, and no place",
            "`bequeath convert` makes an experiment of the whole file",
        ),
        "jobId": ("jobs are named after their workers", "leave it out"),
    }

    platform: Annotated[
        Annotated[Literal["aiplatform"], BeforeValidator(choice_reader("aiplatform"))],
        Field(description="Kind of place where trials run: `aiplatform`."),
    ]
    scale_tier: Annotated[
        Annotated[
            Literal["BASIC", "BASIC_GPU", "STANDARD_1", "PREMIUM_1", "BASIC_TPU", "CUSTOM"],
            BeforeValidator(choice_reader(*TIERS, *_OTHER_TIERS, "CUSTOM")),
        ],
        Field(description="`CUSTOM` for the `masterType`, or a tier that stands for one machine."),
    ] = "CUSTOM"
    master_type: Annotated[Machine | None, Field(description="Type of the machines.")] = None
    job_dir: Annotated[
        BucketPath | None,
        Field(description="Folder of a bucket for outputs, which is looked at before the start."),
    ] = None

    @property
    def machine(self) -> TierMachine:
        """The machine of a job, whatever the file calls it."""
        if self.scale_tier != "CUSTOM":
            return TIERS[self.scale_tier]
        accelerator = self.accelerator_type or ""
        count = (self.accelerator_count or 1) if accelerator else 0
        return TierMachine(self.master_type or "", accelerator, count)

    @property
    def gpus_asked(self) -> float:
        """See :attr:`ClusterService.gpus_asked`: a tier may have some."""
        machine = self.machine
        return float(machine.gpus) if machine.accelerator.startswith("NVIDIA_") else 0.0

    @model_validator(mode="after")
    def _fit(self) -> Self:
        tier = self.scale_tier
        if tier in _OTHER_TIERS:
            text, hint = _OTHER_TIERS[tier]
            raise Misfit(f"has the tier {tier!r}, which {text}", at=("scaleTier",), hint=hint)
        if tier == "CUSTOM" and self.master_type is None:
            hint = "write 'masterType: n1-standard-4', or 'scaleTier: BASIC'"
            raise Misfit("names no machine", at=("masterType",), hint=hint)
        given = {"masterType": self.master_type, "acceleratorType": self.accelerator_type}
        for key, value in given.items():
            if tier != "CUSTOM" and value is not None:
                text = f"has {key!r} beside the tier {tier!r}, which is {TIERS[tier].machine}"
                raise Misfit(text, at=(key,), hint="leave one of them out")
        return self
