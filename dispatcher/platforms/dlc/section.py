"""The training service ``dlc``: how the file describes the jobs in which trials run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from dispatcher.experiment.fields import (
    Count,
    CountOrZero,
    Section,
    Size,
    Switch,
    Text,
    choice_reader,
)
from dispatcher.experiment.problems import Misfit
from dispatcher.platforms.alibaba_cloud.section import AlibabaService
from dispatcher.platforms.allocations.section import PlaceMemory
from dispatcher.platforms.clusters.fields import shaped
from dispatcher.platforms.http_jobs.section import StorageThere

_SOURCES = ("storages are a list", "write 'dataSources: [{id: …, at: PATH THERE, here: FOLDER}]'")
_SPECS = ("bequeath writes the nodes of a job", "write their fields beside 'platform'")

_Id = Annotated[Text, shaped(r"[A-Za-z0-9][\w.-]*", "an id, as the console shows it")]
_EcsSpec = Annotated[Text, shaped(r"[a-z]+(\.[\w-]+)+", "a type of machine, as ecs.g6.2xlarge")]
_Uri = Annotated[
    Text,
    shaped(
        r"(nas|cpfs|bmcpfs|oss)://[^/\s?#@]+(/\S*)?",
        "nas://ID.REGION.nas.aliyuncs.com/PATH/ or oss://BUCKET.ENDPOINT/PATH/, without a login",
    ),
]


class DlcDataSource(StorageThere):
    """A storage that jobs mount: a dataset of the workspace, or a file system by its address."""

    id: Annotated[_Id | None, Field(description="Dataset of the workspace, as `d-…`.")] = None
    uri: Annotated[_Uri | None, Field(description="Address instead, as `nas://…`.")] = None
    bucket: Annotated[Switch, Field(description="Whether a dataset is a bucket of OSS.")] = False

    @property
    def is_bucket(self) -> bool:
        """Whether it is mounted by ossfs, which renames no file at once."""
        return self.bucket or (self.uri or "").startswith("oss:")

    @model_validator(mode="after")
    def _fit(self) -> Self:
        if (self.id is None) == (self.uri is None):
            raise Misfit("needs an 'id' or a 'uri', and not both", at=("id",))
        if self.at is None and (self.uri is not None or self.here is not None):
            text = "does not say the path at which jobs have it"
            raise Misfit(text, at=("at",), hint="write 'at: /mnt/data'")
        return self


class DlcVpc(Section):
    """The network of one's own that jobs are in, where NAS and the head are reached."""

    id: Annotated[_Id, Field(description="Id of the VPC, as `vpc-…`.")]
    security_group: Annotated[_Id, Field(description="Security group in it, as `sg-…`.")]
    switch: Annotated[_Id | None, Field(description="vSwitch in it; any if not given.")] = None


class DlcSection(AlibabaService):
    """Run trials in jobs of PAI-DLC, each with an agent that takes many trials."""

    product: ClassVar[str] = "pai-dlc"
    refused: ClassVar[Mapping[str, tuple[str, str]]] = {
        "jobType": ("each job is a PyTorchJob, whose nodes know their ranks", "leave it out"),
        "podCount": ("each worker is a job of its own", "write 'allocations: {max: N}'"),
        "jobSpecs": _SPECS,
        "userCommand": _SPECS,
        "nasDataSourceId": _SOURCES,
        "ossDataSourceId": _SOURCES,
    }

    platform: Annotated[
        Annotated[Literal["dlc"], BeforeValidator(choice_reader("dlc"))],
        Field(description="Kind of place where trials run: `dlc`."),
    ]
    workspace_id: Annotated[_Id, Field(description="Workspace of PAI whose jobs they are.")]
    resource_id: Annotated[
        _Id | None, Field(description="Resource quota that jobs take; public machines if none.")
    ] = None
    ecs_spec: Annotated[
        _EcsSpec | None, Field(description="Type of a public machine, as `ecs.g6.2xlarge`.")
    ] = None
    cpus: Annotated[Count | None, Field(description="CPUs of a node in a quota.")] = None
    memory: Annotated[PlaceMemory | None, Field(description="Memory of a node in a quota.")] = None
    gpus: Annotated[CountOrZero, Field(description="GPUs of a node.")] = 0
    gpu_type: Annotated[Text | None, Field(description="Type of these in a quota.")] = None
    shared_memory: Annotated[
        Size | None, Field(description="Size of `/dev/shm` of a node in a quota.")
    ] = None
    priority: Annotated[Count | None, Field(le=9, description="Priority: 1 is the lowest.")] = None
    data_sources: Annotated[
        tuple[DlcDataSource, ...], Field(description="Storages that jobs mount.")
    ] = ()
    vpc: Annotated[DlcVpc | None, Field(description="Network of one's own for jobs.")] = None
    settings: Annotated[
        dict[Text, Any], Field(description="Further fields of a job's `Settings`, such as `Tags`.")
    ] = Field(default_factory=dict)
    node: Annotated[
        dict[Text, Any], Field(description="Further fields of its `JobSpecs`, such as `SpotSpec`.")
    ] = Field(default_factory=dict)

    @property
    def gpus_asked(self) -> float:
        """See :attr:`ClusterService.gpus_asked`."""
        return float(self.gpus)

    @property
    def mounted(self) -> Mapping[str, str]:
        """See :attr:`HttpJobsService.mounted`: storages that this machine has, too."""
        own = {str(x.here): x.at for x in self.data_sources if x.here is not None and x.at}
        return {**self.mounts, **own}

    def is_in_bucket(self, path: str | os.PathLike[str]) -> bool:
        """Whether a folder of this machine is in a bucket, as jobs have it."""
        there = f"{self.seen(path) or path}/"
        holding = [x for x in self.data_sources if x.at and there.startswith(f"{x.at}/")]
        return bool(holding) and max(holding, key=lambda each: len(each.at or "")).is_bucket

    @model_validator(mode="after")
    def _fit(self) -> Self:
        if not isinstance(self.settings.get("Tags", {}), Mapping):
            raise Misfit("has 'Tags' that are no mapping", at=("settings", "Tags"))
        in_quota = (self.cpus, self.memory, self.gpu_type, self.shared_memory)
        if self.ecs_spec is not None and any(each is not None for each in in_quota):
            text = "names 'ecsSpec' beside 'cpus', 'memory', 'gpuType' or 'sharedMemory'"
            raise Misfit(text, at=("ecsSpec",), hint="leave it out, or those, which a quota has")
        if self.ecs_spec is None and None in (self.cpus, self.memory, self.resource_id):
            hint = "write 'ecsSpec', or 'resourceId', 'cpus' and 'memory'"
            raise Misfit("names no machine, and no quota", at=("ecsSpec",), hint=hint)
        return self
