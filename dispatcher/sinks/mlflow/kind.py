"""The kind ``mlflow``: its section of the experiment file."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from dispatcher.experiment.fields import Text
from dispatcher.experiment.problems import Misfit
from dispatcher.experiment.sink_base import Secret, SinkConfig
from dispatcher.sinks.mlflow.client import MlflowClient
from dispatcher.sinks.mlflow.sink import MlflowSink
from dispatcher.sinks.protocol import ExperimentRun, SinkKind, Surroundings


def _check_uri(text: str) -> str:
    try:
        parts = urlsplit(text)
        port, host = parts.port, parts.hostname
    except ValueError as error:
        raise ValueError(f"is no address: {error}") from None
    if parts.scheme in ("file", "sqlite", "") and not host:
        raise ValueError(
            "must be the address of an MLflow server, as 'http://127.0.0.1:5000': a store of files "
            "takes a point twice; start one with 'mlflow server --backend-store-uri sqlite:///…'"
        )
    if parts.scheme not in ("http", "https") or not host or port == 0:
        raise ValueError("must begin with 'http://' or 'https://' and name a host")
    if parts.username is not None or parts.password is not None:
        raise ValueError("holds a password; refer to it by 'username' and 'password' instead")
    if parts.query or parts.fragment or not text.isprintable() or " " in text:
        raise ValueError("must be an address without '?', '#' and blanks")
    return text


class MlflowConfig(SinkConfig):
    """Send runs to an MLflow server: one of the experiment, and one below it for each trial."""

    secret_attributes: ClassVar[tuple[str, ...]] = ("username", "password", "token")

    kind: Annotated[Literal["mlflow"], Field(description="Kind of tracker: `mlflow`.")]
    uri: Annotated[
        Annotated[Text, AfterValidator(_check_uri)],
        Field(description="Address of the server, such as `http://127.0.0.1:5000`."),
    ]
    experiment: Annotated[
        Annotated[Text, Field(max_length=250)] | None,
        Field(description="Experiment there; made if it is missing. This one's name if not given."),
    ] = None
    username: Annotated[
        Secret | None, Field(description="User at the server, as `env:NAME` or `file:PATH`.")
    ] = None
    password: Annotated[
        Secret | None, Field(description="Password there, as `env:NAME` or `file:PATH`.")
    ] = None
    token: Annotated[
        Secret | None, Field(description="Token in place of the two, `env:NAME` or `file:PATH`.")
    ] = None

    @model_validator(mode="after")
    def _one_way_in(self) -> Self:
        if self.token is not None and self.username is not None:
            text, hint = "has both a 'token' and a 'username'", "keep one of the two"
            raise Misfit(text, at=("token",), hint=hint)
        if (self.username is None) != (self.password is None):
            missing = "password" if self.password is None else "username"
            at = "username" if self.password is None else "password"
            raise Misfit(f"needs '{missing}' as well", at=(at,))
        return self


class MlflowKind(SinkKind[MlflowConfig]):
    """MLflow by its REST API: no package is needed."""

    protocol = 1
    section = MlflowConfig

    def target(self, section: MlflowConfig, experiment: ExperimentRun) -> str:
        """Server and experiment."""
        return f"{section.uri}, experiment {section.experiment or experiment.name!r}"

    def sink_for(self, section: MlflowConfig, surroundings: Surroundings) -> MlflowSink:
        """Make the sink; the server is asked with the first trial."""
        client = MlflowClient(section.uri, surroundings.secrets)
        name = section.experiment or surroundings.experiment.name
        return MlflowSink(client, name, surroundings)
