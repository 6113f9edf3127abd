"""The training service ``openpai``: how the file describes the jobs in which trials run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from dispatcher.experiment.fields import Count, CountOrZero, Size, Text, choice_reader
from dispatcher.platforms.allocations.section import PlaceMemory
from dispatcher.platforms.clusters.fields import SecretReference, ServiceUrl
from dispatcher.platforms.http_jobs.section import (
    HttpJobsService,
    NamedStorage,
    PlainName,
    RegistryConfig,
    apart,
    places_of,
)


class PaiStorageConfig(NamedStorage):
    """A storage of the cluster, at `/mnt/NAME` if no path is given; its name alone is short for it.
    Of one that is not shared jobs see the folder of their user."""


class OpenPaiSection(HttpJobsService):
    """Run trials in jobs of an OpenPAI cluster, each with an agent that takes many trials."""

    other_names: ClassVar[Mapping[str, str]] = {
        **HttpJobsService.other_names,
        "host": "address",
        "username": "user",
        "shmSize": "sharedMemory",
    }

    platform: Annotated[
        Annotated[Literal["openpai"], BeforeValidator(choice_reader("openpai"))],
        Field(description="Kind of place where trials run: `openpai`."),
    ]
    address: Annotated[
        ServiceUrl, Field(description="Address of the cluster's page, `https://HOST`.")
    ]
    user: Annotated[PlainName, Field(description="User whose jobs they are.")]
    token: Annotated[
        SecretReference,
        Field(description="Application token of that user, as `env:NAME` or `file:PATH`."),
    ]
    virtual_cluster: Annotated[
        PlainName, Field(description="Virtual cluster that jobs wait in.")
    ] = "default"
    cpus: Annotated[Count, Field(description="CPUs of a job's node.")]
    memory: Annotated[PlaceMemory, Field(description="Memory of a job's node.")]
    gpus: Annotated[CountOrZero, Field(description="GPUs of a job's node.")] = 0
    shared_memory: Annotated[
        Size | None, Field(description="Size of `/dev/shm`; 64 MiB if not given.")
    ] = None
    storages: Annotated[
        tuple[PaiStorageConfig, ...],
        apart,
        Field(description="Storages of the cluster that jobs have."),
    ] = ()
    registry: Annotated[
        RegistryConfig | None, Field(description="Login to the registry that has the image.")
    ] = None
    extras: Annotated[
        dict[Text, Any],
        Field(description="Further fields of `extras` of a job, such as `hivedScheduler`."),
    ] = Field(default_factory=dict)

    @property
    def gpus_asked(self) -> float:
        """See :attr:`ClusterService.gpus_asked`."""
        return float(self.gpus)

    @property
    def mounted(self) -> Mapping[str, str]:
        """See :attr:`HttpJobsService.mounted`: storages that this machine has, too."""
        return {**self.mounts, **places_of(self.storages)}

    @property
    def node_resources(self) -> dict[str, int]:
        """The resources of a node, as the protocol names them."""
        return {"cpu": self.cpus, "memoryMB": -(-self.memory >> 20), "gpu": self.gpus}
