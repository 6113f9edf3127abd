"""The keys that sections of Alibaba Cloud's services of jobs have in common."""

from __future__ import annotations

import os
from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from dispatcher.experiment.fields import Text
from dispatcher.experiment.problems import Misfit
from dispatcher.http_services.alibaba import KeyByReference, KeySource, key_of_variables
from dispatcher.platforms.clusters.fields import SecretReference, ServiceUrl, shaped
from dispatcher.platforms.http_jobs.credentials import secret_of
from dispatcher.platforms.http_jobs.section import HttpJobsService

_Region = Annotated[Text, shaped(r"[a-z]+(-[a-z0-9]+)+", "a region, as cn-hangzhou")]


class AlibabaService(HttpJobsService):
    """Run trials in jobs of a service of Alibaba Cloud."""

    #: The service's word, with which its address begins.
    product: ClassVar[str]

    region: Annotated[_Region, Field(description="Region of the service, as `cn-hangzhou`.")]
    address: Annotated[
        ServiceUrl | None,
        Field(
            description="Address of the service, such as its twin inside of a VPC; that of the "
            "region if not given."
        ),
    ] = None
    access_key_id: Annotated[
        SecretReference | None,
        Field(
            description="Id of an access key, as `env:NAME`, `file:PATH`, or `file:PATH#KEY/KEY` "
            "for a value in a file of JSON or YAML. If not given, the key is that of "
            "`ALIBABA_CLOUD_ACCESS_KEY_ID`, `ALIBABA_CLOUD_ACCESS_KEY_SECRET` and "
            "`ALIBABA_CLOUD_SECURITY_TOKEN`, else what `ALIBABA_CLOUD_CREDENTIALS_URI` hands out."
        ),
    ] = None
    access_key_secret: Annotated[
        SecretReference | None, Field(description="Secret of that key, as a reference as well.")
    ] = None
    security_token: Annotated[
        SecretReference | None,
        Field(description="Token of a key that ends, by the Security Token Service; a reference."),
    ] = None

    @property
    def server(self) -> str:
        """The address of the service."""
        return self.address or f"https://{self.product}.{self.region}.aliyuncs.com"

    @property
    def key_source(self) -> KeySource | None:
        """The way to the access key; None: neither a reference nor a variable names one."""
        if self.access_key_id is None or self.access_key_secret is None:
            return key_of_variables(secret_of, os.environ)
        token = self.security_token or ""
        return KeyByReference(secret_of, self.access_key_id, self.access_key_secret, token)

    @model_validator(mode="after")
    def _fit_key(self) -> Self:
        if (self.access_key_id is None) != (self.access_key_secret is None):
            hint = "write 'accessKeyId' and 'accessKeySecret', or none"
            raise Misfit("names one half of an access key", at=("accessKeyId",), hint=hint)
        if self.security_token is not None and self.access_key_id is None:
            text = "has a 'securityToken', and not the key that it belongs to"
            raise Misfit(text, at=("securityToken",), hint="write 'accessKeyId', too")
        return self
