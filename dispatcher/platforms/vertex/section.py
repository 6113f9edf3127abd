"""The training service ``vertex``: how the file describes the jobs in which trials run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from dispatcher.experiment.fields import Section, Text, choice_reader
from dispatcher.experiment.problems import Misfit
from dispatcher.platforms.clusters.fields import PathHere, PathThere, shaped
from dispatcher.platforms.google_cloud.section import BucketPath, GoogleService, Machine

#: The folder in which jobs have shares.
SHARES = "/mnt/nfs"

_STRATEGIES = ("STANDARD", "SPOT", "FLEX_START")

_IMAGE = ("jobs run an image, in which an agent is", "write 'image: REGISTRY/NAME:TAG'")
_PACKAGE = ("an agent needs an image of its own", "install the package in the image of 'image'")
_POOLS = ("bequeath writes the pools of a job", "write their fields beside 'platform'")
_TRIES = ("each try is a trial's next attempt", "write 'trialRetries' beside 'trainingService'")


class NfsMount(Section):
    """One share by NFS that jobs have, as Filestore lends them."""

    server: Annotated[
        Annotated[Text, shaped(r"[0-9a-fA-F.:]+", "the address of a server, as 10.0.0.2")],
        Field(description="Address of the NFS server in the network of the jobs."),
    ]
    path: Annotated[PathThere, Field(description="Path that the server exports.")]
    mount_point: Annotated[
        Annotated[Text, shaped(r"[\w.-]*\w[\w.-]*", "the name of a folder, as share")],
        Field(description=f"Name of the folder below `{SHARES}` at which jobs have it."),
    ]
    here: Annotated[PathHere, Field(description="Folder of this machine that is the same share.")]


class VertexSection(GoogleService):
    """Run trials in custom jobs of Vertex AI, each with an agent that takes many trials."""

    refused: ClassVar[Mapping[str, tuple[str, str]]] = {
        "jobSpec": _POOLS,
        "workerPoolSpecs": _POOLS,
        "machineSpec": _POOLS,
        "diskSpec": _POOLS,
        "containerSpec": _IMAGE,
        "executorImageUri": _IMAGE,
        "pythonPackageSpec": _PACKAGE,
        "packageUris": _PACKAGE,
        "pythonModule": _PACKAGE,
        "replicaCount": ("each worker is a job of its own", "write 'allocations: {max: N}'"),
        "displayName": ("jobs are named after their workers", "leave it out"),
        "disableRetries": _TRIES,
        "restartJobOnWorkerRestart": _TRIES,
        "lustreMounts": ("only shares by NFS are known here", "write 'nfsMounts'"),
    }

    platform: Annotated[
        Annotated[Literal["vertex"], BeforeValidator(choice_reader("vertex"))],
        Field(description="Kind of place where trials run: `vertex`."),
    ]
    machine_type: Annotated[Machine, Field(description="Type of the machines.")]
    nfs_mounts: Annotated[
        tuple[NfsMount, ...], Field(description="Shares by NFS that jobs have.")
    ] = ()
    network_attachment: Annotated[
        Text | None,
        Field(description="Network attachment of Private Service Connect, in place of `network`."),
    ] = None
    base_output_directory: Annotated[
        BucketPath | None,
        Field(description="Folder of a bucket for outputs: jobs get it as `AIP_MODEL_DIR`."),
    ] = None
    persistent_resource_id: Annotated[
        Text | None,
        Field(description="Persistent resource whose machines, which are warm, jobs take."),
    ] = None
    strategy: Annotated[
        Annotated[
            Literal["STANDARD", "SPOT", "FLEX_START"], BeforeValidator(choice_reader(*_STRATEGIES))
        ]
        | None,
        Field(description="How machines are had: `SPOT` may be taken back, `FLEX_START` waits."),
    ] = None

    @property
    def mounted(self) -> Mapping[str, str]:
        """See :attr:`HttpJobsService.mounted`: shares as well."""
        shares = {each.here: f"{SHARES}/{each.mount_point}" for each in self.nfs_mounts}
        return {**self.mounts, **shares}

    @property
    def machine(self) -> Mapping[str, Any]:
        """A machine as Vertex AI has it."""
        machine: dict[str, Any] = {"machineType": self.machine_type}
        if self.accelerator_type is not None:
            machine["acceleratorType"] = self.accelerator_type
            machine["acceleratorCount"] = self.accelerator_count or 1
        return machine

    @model_validator(mode="after")
    def _fit(self) -> Self:
        if self.network is not None and self.network_attachment is not None:
            text = "names 'network' and 'networkAttachment', two ways to one network"
            raise Misfit(text, at=("networkAttachment",), hint="leave one of them out")
        if self.nfs_mounts and self.network is None and self.network_attachment is None:
            text = "has shares by NFS, and no network in which jobs reach a server"
            hint = "write 'network: projects/NUMBER/global/networks/NAME', or 'networkAttachment'"
            raise Misfit(text, at=("nfsMounts",), hint=hint)
        points = [each.mount_point for each in self.nfs_mounts]
        for index, point in enumerate(points):
            if point in points[:index]:
                text = f"has two shares at {SHARES}/{point}"
                raise Misfit(text, at=("nfsMounts", index, "mountPoint"))
        return self
