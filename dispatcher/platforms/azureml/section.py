"""The training service ``azureml``: how the file describes the jobs in which trials run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from dispatcher.experiment.fields import CountOrZero, Size, Text, choice_reader
from dispatcher.platforms.clusters.fields import ImageName, SecretReference, ServiceUrl, shaped
from dispatcher.platforms.http_jobs.section import HttpJobsService, NamedStorage, apart, places_of

#: What an environment of Azure is called by: of the workspace, and of a registry.
OWN, REGISTRIES = "azureml:", "azureml://registries/"

_WORD = r"[A-Za-z0-9][\w.-]*"
_ENVIRONMENT = (
    rf"(?!{OWN}).*|{OWN}{_WORD}:{_WORD}|{REGISTRIES}{_WORD}/environments/{_WORD}/versions/{_WORD}"
)
_SECRET = (
    "this file is kept and copied, so no secret stands in it",
    "set AZURE_CLIENT_SECRET where you start it, or write 'token: file:PATH'",
)

_Subscription = Annotated[
    Text, shaped(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", "the id of a subscription")
]
_Group = Annotated[Text, shaped(r"[\w.()-]{0,89}[\w()-]", "the name of a resource group")]
_Workspace = Annotated[
    Text, shaped(r"[A-Za-z0-9][\w-]{2,32}", "the name of a workspace: 3 to 33 characters")
]
_Compute = Annotated[
    Text, shaped(r"[A-Za-z][A-Za-z0-9-]{1,31}", "the name of a compute: 2 to 32 characters")
]
_Folder = Annotated[Text, shaped(r"[\w.-]+(/[\w.-]+)*", "a folder below the store's root")]


class DatastoreConfig(NamedStorage):
    """A datastore of the workspace that jobs mount, at `/mnt/NAME` if no path is given; its name
    alone is short for it."""

    folder: Annotated[
        _Folder | None, Field(description="Folder of it that jobs have; all of it if not given.")
    ] = None


class AzureMlSection(HttpJobsService):
    """Run trials in command jobs of Azure Machine Learning, each with an agent that takes many
    trials."""

    other_names: ClassVar[Mapping[str, str]] = {
        **HttpJobsService.other_names,
        "workspaceName": "workspace",
        "computeTarget": "compute",
        "shmSize": "sharedMemory",
    }
    refused: ClassVar[Mapping[str, tuple[str, str]]] = dict.fromkeys(
        ("clientSecret", "password", "secret", "accountKey"), _SECRET
    )

    platform: Annotated[
        Annotated[Literal["azureml"], BeforeValidator(choice_reader("azureml"))],
        Field(description="Kind of place where trials run: `azureml`."),
    ]
    subscription_id: Annotated[
        _Subscription, Field(description="Subscription that has the workspace.")
    ]
    resource_group: Annotated[_Group, Field(description="Resource group that has the workspace.")]
    workspace: Annotated[_Workspace, Field(description="Workspace whose jobs they are.")]
    compute: Annotated[_Compute, Field(description="Compute of the workspace that runs them.")]
    image: Annotated[
        ImageName,
        shaped(_ENVIRONMENT, f"an image, or an environment with its version, {OWN}NAME:VERSION"),
        Field(
            description="Image of the jobs, or an environment: `azureml:NAME:VERSION` of the "
            "workspace, `azureml://registries/R/environments/NAME/versions/V` of a registry."
        ),
    ]
    gpus: Annotated[
        CountOrZero, Field(description="GPUs of a node, which the first job looks for.")
    ] = 0
    shared_memory: Annotated[
        Size | None, Field(description="Size of `/dev/shm`; 2 GB if not given.")
    ] = None
    datastores: Annotated[
        tuple[DatastoreConfig, ...], apart, Field(description="Datastores that jobs mount.")
    ] = ()
    extras: Annotated[
        dict[Text, Any],
        Field(description="Further properties of a job, as `{identity: {identityType: Managed}}`."),
    ] = Field(default_factory=dict)
    token: Annotated[
        SecretReference | None,
        Field(
            description="Access token, as `file:PATH`; if not given, the service principal that "
            "`AZURE_TENANT_ID`, `AZURE_CLIENT_ID` and `AZURE_CLIENT_SECRET` name, or the identity "
            "of this machine."
        ),
    ] = None
    address: Annotated[
        ServiceUrl, Field(description="Address of Azure Resource Manager: other clouds have one.")
    ] = "https://management.azure.com"

    @property
    def gpus_asked(self) -> float:
        """See :attr:`ClusterService.gpus_asked`."""
        return float(self.gpus)

    @property
    def mounted(self) -> Mapping[str, str]:
        """See :attr:`HttpJobsService.mounted`: datastores that this machine has, too."""
        return {**self.mounts, **places_of(self.datastores)}
