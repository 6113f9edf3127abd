"""The keys that sections of Google Cloud's services of jobs have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from dispatcher.experiment.fields import Count, Text
from dispatcher.experiment.problems import Misfit
from dispatcher.platforms.clusters.fields import SecretReference, ServiceUrl, shaped
from dispatcher.platforms.http_jobs.section import HttpJobsService

#: How long a job may run where nobody says it (seconds): the services' own rule.
SEVEN_DAYS_S = 604_800.0

#: Labels of a job at most, and the beginning of ours, of which there are four.
MOST_LABELS, OWN_LABELS = 64, "bequeath-"
_OUR_LABELS = 4

BucketPath = Annotated[
    Text, shaped(r"gs://[a-z0-9][a-z0-9._-]+(/\S*)?", "a folder of a bucket, as gs://BUCKET/FOLDER")
]
Machine = Annotated[Text, shaped(r"[a-z][a-z0-9_-]+", "a type of machine, as n1-standard-4")]
_Api = Literal["aiplatform", "ml", "logging", "secretmanager", "storage"]
_Label = Annotated[
    Text,
    shaped(r"[^\W\d_A-Z]([^\WA-Z]|-){0,62}", "a label: at most 63 small letters, digits, - and _"),
]
_LabelValue = Annotated[
    str, shaped(r"([^\WA-Z]|-){0,63}", "at most 63 small letters, digits, - and _")
]
_Project = Annotated[
    Text,
    shaped(r"([a-z0-9.-]+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]|[0-9]+", "the id of a project, as lab-7"),
]
_Region = Annotated[Text, shaped(r"[a-z]+(-[a-z]+)+[0-9]+", "a region, as us-central1")]
_Accelerator = Annotated[
    Text, shaped(r"(NVIDIA|TPU)_[A-Z0-9_]+", "a type of accelerator, as NVIDIA_TESLA_T4")
]
_Account = Annotated[Text, shaped(r"[^@\s]+@[^@\s]+", "an account, as NAME@PROJECT.iam.….com")]
_Network = Annotated[
    Text,
    shaped(
        r"projects/[0-9]+/global/networks/[^/\s]+", "projects/NUMBER/global/networks/NAME in full"
    ),
]


class GoogleService(HttpJobsService):
    """Run trials in jobs of a service of Google Cloud."""

    other_names: ClassVar[Mapping[str, str]] = {
        **HttpJobsService.other_names,
        "imageUri": "image",
        "location": "region",
        "timeout": "wallTime",
        "maxRunningTime": "wallTime",
    }

    project: Annotated[_Project, Field(description="Project whose jobs they are.")]
    region: Annotated[_Region, Field(description="Region in which they run, as `us-central1`.")]
    accelerator_type: Annotated[
        _Accelerator | None, Field(description="GPU of a machine, as `NVIDIA_TESLA_T4`.")
    ] = None
    accelerator_count: Annotated[
        Count | None, Field(description="GPUs of a machine; one if only their type is given.")
    ] = None
    boot_disk_type: Annotated[
        Annotated[Text, shaped(r"[a-z-]+", "a type of disk, as pd-ssd")] | None,
        Field(description="Type of a machine's disk: `pd-ssd` or `pd-standard`."),
    ] = None
    boot_disk_size_gb: Annotated[
        Count | None, Field(description="Size of a machine's disk (GB); 100 if not given.")
    ] = None
    service_account: Annotated[
        _Account | None,
        Field(description="Account as which jobs run; that of the service if not given."),
    ] = None
    network: Annotated[
        _Network | None,
        Field(description="Network that jobs are peered with: `projects/12345/global/networks/x`."),
    ] = None
    labels: Annotated[
        dict[_Label, _LabelValue], Field(description="Further labels of the jobs.")
    ] = Field(default_factory=dict)
    token: Annotated[
        SecretReference | None,
        Field(
            description="Access token, as `file:PATH`; application default credentials if not "
            "given."
        ),
    ] = None
    endpoints: Annotated[
        dict[_Api, ServiceUrl],
        Field(
            description="Addresses of Google's services that differ from `https://NAME."
            "googleapis.com`, by their names, as of Private Service Connect."
        ),
    ] = Field(default_factory=dict)

    @property
    def gpus_asked(self) -> float:
        """See :attr:`ClusterService.gpus_asked`."""
        is_gpu = (self.accelerator_type or "").startswith("NVIDIA_")
        return float(self.accelerator_count or 1) if is_gpu else 0.0

    @property
    def wall_s(self) -> float:
        """See :attr:`ServiceConfig.wall_s`: that of the jobs; their service has one at any rate."""
        return self.wall_time or SEVEN_DAYS_S

    @property
    def disk(self) -> Mapping[str, Any]:
        """The disk of a machine in the services' words; empty: theirs."""
        asked = {"bootDiskType": self.boot_disk_type, "bootDiskSizeGb": self.boot_disk_size_gb}
        return {key: value for key, value in asked.items() if value is not None}

    @model_validator(mode="after")
    def _fit_google(self) -> Self:
        if self.accelerator_count is not None and self.accelerator_type is None:
            text = "has an 'acceleratorCount' and no 'acceleratorType'"
            raise Misfit(text, at=("acceleratorCount",), hint="write 'acceleratorType', too")
        for name in self.labels:
            if name.startswith(OWN_LABELS):
                text = f"has the label {name!r}, and those that begin with {OWN_LABELS!r} are ours"
                raise Misfit(text, at=("labels", name))
        if len(self.labels) > MOST_LABELS - _OUR_LABELS:
            text = f"has {len(self.labels)} labels: a job has {MOST_LABELS} at most"
            raise Misfit(f"{text}, of which {_OUR_LABELS} are ours", at=("labels",))
        return self
