"""The training service ``dlts``: how the file describes the jobs in which trials run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from dispatcher.experiment.fields import CountOrZero, Text, choice_reader
from dispatcher.platforms.clusters.fields import SecretReference, ServiceUrl
from dispatcher.platforms.http_jobs.section import HttpJobsService

_NAME = re.compile(r"[A-Za-z0-9._-]*[A-Za-z0-9_-]")


def _check_name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise ValueError(f"must be a name of letters, digits, '.', '_' and '-', not {text!r}")
    return text


Name = Annotated[Text, AfterValidator(_check_name)]


class DltsSection(HttpJobsService):
    """Run trials in jobs of a DLTS cluster, each with an agent that takes many trials."""

    other_names: ClassVar[Mapping[str, str]] = {
        **HttpJobsService.other_names,
        "dashboard": "address",
        "gpuNum": "gpus",
        "vcName": "team",
    }

    platform: Annotated[
        Annotated[Literal["dlts"], BeforeValidator(choice_reader("dlts"))],
        Field(description="Kind of place where trials run: `dlts`."),
    ]
    address: Annotated[
        ServiceUrl, Field(description="Address of the cluster's dashboard, `https://HOST`.")
    ]
    cluster: Annotated[Name, Field(description="Cluster, as the dashboard names it.")] = ".default"
    team: Annotated[Name, Field(description="Team (virtual cluster) whose machines jobs take.")]
    email: Annotated[Text, Field(description="Address of the user whose jobs they are.")]
    password: Annotated[
        SecretReference,
        Field(description="Password of that user for the API, as `env:NAME` or `file:PATH`."),
    ]
    gpus: Annotated[CountOrZero, Field(description="GPUs of a job.")] = 0
    gpu_type: Annotated[
        Name | None,
        Field(description="Type of the GPUs; the first one that the team has if not given."),
    ] = None
    extras: Annotated[
        dict[Text, Any],
        Field(description="Further fields of a job, as `workPath`, `dataPath`, `mountpoints`."),
    ] = Field(default_factory=dict)

    @property
    def gpus_asked(self) -> float:
        """See :attr:`ClusterService.gpus_asked`."""
        return float(self.gpus)
