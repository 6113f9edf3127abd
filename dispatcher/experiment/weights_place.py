"""The part of an experiment file about the place of weights and their retention."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal, Self
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

from dispatcher.experiment.fields import (
    MOST,
    Count,
    ResolvedPath,
    Section,
    Size,
    Text,
    choice_reader,
    fold_word,
    resolve_path,
)
from dispatcher.experiment.problems import Misfit
from trial_runtime.weights.remote import credentials
from trial_runtime.weights.remote.address import BadRoot, check_url, is_url
from tuners.plain_json import plain

Keep = Literal["all", "best", "ancestors-of-live", "last-generations"]
_COUNTED = {"best": "best", "lastgenerations": "last-generations"}

CACHE_BYTES = 10 << 30
#: Enough to compare or to return to, while versions of many gigabytes still fit a disk.
VERSIONS = 10


class WeightKeysConfig(Section):
    """The keys of a proposal that carry paths of weights."""

    save: Annotated[Text, Field(description="Key of the path a trial saves to.")] = "save_path"
    restore: Annotated[Text, Field(description="Key of the path a trial restores from.")] = (
        "restore_path"
    )

    @model_validator(mode="after")
    def _differ(self) -> Self:
        if self.save == self.restore:
            raise Misfit(
                f"names {self.save!r} twice: save and restore need keys of their own",
                at=("restore",),
            )
        return self


class RetentionConfig(Section):
    """The weights to keep. What a live, queued or blocked descendant or a pin needs stays, too."""

    keep: Annotated[
        Annotated[
            Keep,
            BeforeValidator(choice_reader("all", "best", "ancestors-of-live", "last-generations")),
        ],
        Field(
            description="`all`; `best` and `last-generations` (with `count`, or written "
            "`keep: {best: 5}`); `ancestors-of-live`."
        ),
    ] = "all"
    count: Annotated[
        Count | None,
        Field(description="How many of the best trials, or of the last generations."),
    ] = None

    @classmethod
    def read_short_form(cls, value: Any) -> Any:
        """Read ``all``, ``{keep: {best: 5}}`` and ``{best: 5}`` as ``{keep, count}``."""
        if isinstance(value, str):
            return {"keep": value}
        if not isinstance(value, dict):
            return value
        inner = value.get("keep", value if len(value) == 1 else None)
        if isinstance(inner, dict) and len(inner) == 1:
            ((word, count),) = inner.items()
            if isinstance(word, str) and fold_word(word) in _COUNTED:
                return {"keep": _COUNTED[fold_word(word)], "count": count}
        return value

    @model_validator(mode="after")
    def _count_fits(self) -> Self:
        counted = self.keep in ("best", "last-generations")
        if counted and self.count is None:
            raise Misfit("needs a count", at=("keep",), hint=f"write 'keep: {{{self.keep}: 5}}'")
        if not counted and self.count is not None:
            raise Misfit(f"keeps {self.keep!r}, so 'count' says nothing", at=("count",))
        return self


_read_word = choice_reader("auto", "always", "off")


def _read_when(value: object) -> object:
    if value is False:  # an 'off' that a tool wrote as a truth value
        return "off"
    return _read_word(value)


def _check_folder(text: str) -> str:
    if not text.startswith(("/", "~")) or "\0" in text or "\n" in text:
        raise ValueError(
            f"must be a path from the root of each host, or from '~' there, not {text!r}"
        )
    return text


class WeightsCacheConfig(Section):
    """Copies of parents' data files on each host's own disk, fetched once for all children."""

    when: Annotated[
        Annotated[Literal["auto", "always", "off"], BeforeValidator(_read_when)],
        Field(
            description="`auto`: where weights lie on a network file system; `always`: also on a "
            "disk of the host; `off`. May be written in place of the section."
        ),
    ] = "auto"
    size: Annotated[
        Size, Field(description="Most bytes of a host's cache; the least recently used go.")
    ] = CACHE_BYTES
    directory: Annotated[
        Annotated[Text, AfterValidator(_check_folder)] | None,
        Field(
            description="Folder of the cache on a local disk of each host, which experiments may "
            "share; if not given, below the user's cache folder there, or below `/var/tmp` where "
            "the home is on the network."
        ),
    ] = None

    @classmethod
    def read_short_form(cls, value: Any) -> Any:
        """Read ``auto`` and ``off`` in place of a section."""
        return {"when": value} if isinstance(value, str | bool) else value


_BOUND_SCHEMA = {"anyOf": [{"type": "integer", "minimum": 1}, {"const": "all"}]}


def _read_bound(value: object) -> int | str:
    if value == "all":
        return "all"
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST:
        raise ValueError(f"must be 'all' or a number from 1, not {value!r}")
    return value


Bound = Annotated[int | str, PlainValidator(_read_bound), WithJsonSchema(_BOUND_SCHEMA)]


class SharedStoresConfig(Section):
    """The number of versions of a shared store that are kept, beside those still in use."""

    keep: Annotated[
        Bound,
        Field(
            description="The newest so many, or `all`. Versions are kept beside them that a trial "
            "which has not ended has pinned or was offered, and that the tuner holds or may "
            "pin in a request that is open. May be written in place of the section."
        ),
    ] = VERSIONS
    stores: Annotated[
        dict[str, Bound],
        Field(description="Other numbers for some stores, by name, such as `{teacher: all}`."),
    ] = Field(default_factory=dict)

    @classmethod
    def read_short_form(cls, value: Any) -> Any:
        """Read ``5`` and ``all`` in place of a section."""
        return {"keep": value} if isinstance(value, str | int) else value

    @property
    def bound(self) -> int:
        """Versions kept of a store without a number of its own; 0: all."""
        return _plain(self.keep)

    @property
    def bounds(self) -> dict[str, int]:
        """Versions kept, by store, of stores with a number of their own; 0: all."""
        return {name: _plain(keep) for name, keep in self.stores.items()}


def _plain(keep: int | str) -> int:
    return keep if isinstance(keep, int) else 0


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
