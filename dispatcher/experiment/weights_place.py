"""The part of an experiment file about the place of weights and their retention."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Self
from urllib.parse import unquote, urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainValidator,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)

from dispatcher.experiment.fields import ResolvedPath, Section, resolve_path
from dispatcher.experiment.plain_json import plain
from dispatcher.experiment.problems import Misfit
from dispatcher.experiment.sections import RetentionConfig, WeightKeysConfig
from dispatcher.experiment.shared_stores import SharedStoresConfig
from dispatcher.experiment.weights_cache import WeightsCacheConfig
from trial_runtime.weights.remote import credentials
from trial_runtime.weights.remote.address import BadRoot, check_url, is_url


class RootUrl(str):
    """A weights root that is no folder, as a URL of fsspec."""

    __slots__ = ()

    @property
    def protocol(self) -> str:
        """The URL's part before ``://``."""
        return self.partition("://")[0].lower()


def read_root(value: object, info: ValidationInfo) -> Path | RootUrl | None:
    """Read a folder, or a URL; ``file://`` is another way to write a folder."""
    if value is None:
        return None
    if not isinstance(value, str) or not is_url(value):
        return resolve_path(value, info)
    try:
        url = check_url(value)
    except BadRoot as error:
        raise ValueError(f"{error.message}{f' ({error.hint})' if error.hint else ''}") from error
    parts = urlsplit(url)
    if parts.scheme.lower() not in ("file", "local"):
        return RootUrl(url)
    if parts.netloc not in ("", "localhost"):
        raise ValueError(f"must have three slashes to be a folder of this machine, not {value!r}")
    return resolve_path(unquote(parts.path), info)


def _read_options(value: object, info: ValidationInfo) -> object:
    if not isinstance(value, dict):
        return value
    try:
        return credentials.anchored(value, lambda path: os.fspath(resolve_path(path, info)))
    except AttributeError:  # keys that are no texts, which a later check reports
        return value


def _no_secret_written_out(options: dict[str, Any]) -> dict[str, Any]:
    key = credentials.written_out(options)
    if key is not None:
        raise ValueError(f"holds a secret under {key!r}: write env:NAME or file:PATH there")
    return options


class WeightsPlace(Section):
    """The keys for the place of weights and their retention."""

    weights_root: Annotated[
        Annotated[
            Path | RootUrl | None,
            PlainValidator(read_root),
            WithJsonSchema({"anyOf": [{"type": "string", "title": "path"}, {"type": "null"}]}),
        ],
        Field(
            description="Folder below which all weights lie; in the experiment's own if not given. "
            "Or the URL of a store that all machines reach, such as `s3://bucket/folder` or "
            "`sftp://user@host/folder`."
        ),
    ] = None
    weights_root_options: Annotated[
        Annotated[
            dict[str, Any],
            BeforeValidator(_read_options),
            AfterValidator(plain),
            AfterValidator(_no_secret_written_out),
        ],
        Field(
            description="Options of fsspec for a `weightsRoot` that is a URL, such as "
            "`{endpoint_url: …}`. Secrets by reference only, as `env:NAME` or `file:PATH`, which "
            "each process that needs one looks up for itself."
        ),
    ] = Field(default_factory=dict)
    weight_keys: Annotated[
        WeightKeysConfig, Field(description="Keys of a proposal that carry paths of weights.")
    ] = Field(default_factory=WeightKeysConfig)
    weights_read_roots: Annotated[
        tuple[ResolvedPath, ...],
        Field(description="Further folders that trials may read weights from, pretrained ones."),
    ] = ()
    weights_cache: Annotated[
        WeightsCacheConfig,
        Field(
            description="Copies of parents' files on each host's own disk: `auto`, `always`, "
            "`off`, or a section."
        ),
    ] = Field(default_factory=WeightsCacheConfig)
    retention: Annotated[
        RetentionConfig,
        Field(
            description="Weights to keep: `all`, `{best: 5}`, `{lastGenerations: 3}` or "
            "`ancestors-of-live`."
        ),
    ] = Field(default_factory=RetentionConfig)

    shared_stores: Annotated[
        SharedStoresConfig,
        Field(
            description="How many versions of shared stores are kept: a number, `all`, or a "
            "section."
        ),
    ] = Field(default_factory=SharedStoresConfig)

    @property
    def weights_folder(self) -> Path | None:
        """The weights root, if it is a folder that the file names."""
        return self.weights_root if isinstance(self.weights_root, Path) else None

    @property
    def in_memory(self) -> bool:
        """Whether weights are gone with the agent that holds them."""
        return isinstance(self.weights_root, RootUrl) and self.weights_root.protocol == "memory"

    @model_validator(mode="after")
    def _options_fit_the_root(self) -> Self:
        if self.weights_root_options and not isinstance(self.weights_root, RootUrl):
            raise Misfit(
                "'weightsRootOptions' are for a 'weightsRoot' that is a URL",
                at=("weightsRootOptions",),
            )
        if self.in_memory and self.retention.keep != "all":
            raise Misfit(
                "'retention' must be 'all' with memory://, which nobody but its agent can read",
                at=("retention",),
                hint="keep weights in a folder: leave 'weightsRoot' out",
            )
        return self
