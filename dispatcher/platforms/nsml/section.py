"""The training service ``nsml``: how the file describes the runs in which trials run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field

from dispatcher.experiment.fields import Count, Text, choice_reader
from dispatcher.platforms.clusters.fields import SecretReference, ServiceUrl, shaped
from dispatcher.platforms.http_jobs.section import HttpJobsService

_Id = Annotated[Text, shaped(r"[A-Za-z0-9_-]+", "the id of a project, as its page shows it")]


class NsmlSection(HttpJobsService):
    """Run trials in runs of a project of CLOVA NSML, each with an agent that takes many trials."""

    other_names: ClassVar[Mapping[str, str]] = {
        **HttpJobsService.other_names,
        "projectId": "project",
        "gpuSvrCode": "gpuServer",
    }

    platform: Annotated[
        Annotated[Literal["nsml"], BeforeValidator(choice_reader("nsml"))],
        Field(description="Kind of place where trials run: `nsml`."),
    ]
    address: Annotated[ServiceUrl, Field(description="Address of the API.")] = (
        "https://nsml.apigw.ntruss.com/nsml/v1"
    )
    project: Annotated[_Id, Field(description="Id of the project.")]
    access_key: Annotated[
        SecretReference, Field(description="Access key id of the account, `env:NAME`, `file:PATH`.")
    ]
    secret_key: Annotated[
        SecretReference, Field(description="Secret key of the account, in the same way.")
    ]
    api_key: Annotated[
        SecretReference, Field(description="Key of the API gateway, in the same way.")
    ]
    gpu_server: Annotated[Count, Field(description="Code of the type of server.")]
    image_type: Annotated[
        Annotated[Literal["BASE", "CUSTOM"], BeforeValidator(choice_reader("BASE", "CUSTOM"))],
        Field(description="Whether the image is one of NSML's, `BASE`, or of your own."),
    ] = "CUSTOM"
    block_storages: Annotated[
        tuple[Count, ...], Field(description="Numbers of block storages of runs.")
    ] = ()
    ended_states: Annotated[
        tuple[Text, ...],
        Field(description="NSML's words for runs that have ended, which it does not publish."),
    ] = ()
