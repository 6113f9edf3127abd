"""The keys that sections of services over HTTP have in common."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field

from dispatcher.experiment.fields import ResolvedPath, Section, Text, fold_word
from dispatcher.experiment.problems import Misfit
from dispatcher.platforms.allocations.section import Line, SharedPath, WallTime
from dispatcher.platforms.clusters.fields import (
    ImageName,
    PathHere,
    PathThere,
    SecretReference,
    shaped,
)
from dispatcher.platforms.clusters.section import ClusterService

PlainName = Annotated[
    Text, shaped(r"[A-Za-z0-9._-]+", "a name of letters, digits, '.', '_' and '-'")
]
"""What services call things by."""


class StorageThere(Section):
    """The base of sections about a storage of a service that its jobs have. Those of one service
    add by what it is known."""

    at: Annotated[
        PathThere | None,
        Field(description="Path at which jobs have it; as is usual there if not given."),
    ] = None
    here: Annotated[
        ResolvedPath | None,
        Field(description="Folder at which this machine has what jobs see of it."),
    ] = None


class NamedStorage(StorageThere):
    """A storage that its service knows by a name, at `/mnt/NAME` if no path is given; its name
    alone is short for it."""

    name: Annotated[PlainName, Field(description="Name of the storage.")]

    @classmethod
    def read_short_form(cls, value: Any) -> Any:
        """Read ``home`` for its name."""
        return {"name": value} if isinstance(value, str) else value

    @property
    def place(self) -> str:
        """The path at which jobs have it."""
        return self.at or f"/mnt/{self.name}"


def _check_apart(storages: tuple[NamedStorage, ...]) -> tuple[NamedStorage, ...]:
    places = [each.place for each in storages]
    for index, place in enumerate(places):
        if place in places[:index]:
            raise ValueError(f"has two storages at {place}, where jobs would have one of them")
    return storages


apart = AfterValidator(_check_apart)
"""A check that no two storages are at one place."""


def places_of(storages: Iterable[NamedStorage]) -> dict[str, str]:
    """The folders of this machine that are storages, and the paths at which jobs have them."""
    return {str(each.here): each.place for each in storages if each.here is not None}


class RegistryConfig(Section):
    """The login to a registry of images."""

    address: Annotated[Text, Field(description="Address of the registry, as `registry.lab:5000`.")]
    user: Annotated[Text, Field(description="User of the registry.")]
    password: Annotated[
        SecretReference, Field(description="Password, as `env:NAME` or `file:PATH`.")
    ]


class HttpJobsService(ClusterService):
    """Run trials in jobs of a service, each with an agent that takes many trials."""

    other_names: ClassVar[Mapping[str, str]] = {
        **ClusterService.other_names,
        "dockerImage": "image",
    }

    #: Keys of the service that are refused, each with why, and with what to write in its place.
    refused: ClassVar[Mapping[str, tuple[str, str]]] = {}

    image: Annotated[
        ImageName,
        Field(description="Image of the jobs, with a shell, a Python and what trials import."),
    ]
    python: Annotated[
        Line, Field(description="Python of the image, with trial_runtime and what trials import.")
    ] = "python3"
    mounts: Annotated[
        dict[PathHere, PathThere],
        Field(
            description="Folders of this machine that jobs have as well, and the paths at which "
            "they have them, as `{/nfs/home/me: /mnt/home}`; jobs see no others."
        ),
    ] = Field(default_factory=dict)
    shared_folder: Annotated[
        SharedPath | None,
        Field(
            description="A folder below one of `mounts`: logs and working directories lie below "
            "it, the channel `folder`, code that is brought, and, where the service has no "
            "secrets, keys of agents. The jobs' own `workFolder` if not given."
        ),
    ] = None
    code_folder: Annotated[
        PathThere | None,
        Field(description="Path at which the image has the code, if that is not mounted there."),
    ] = None
    work_folder: Annotated[
        PathThere,
        Field(
            description="Folder there for logs, working directories and unsent results, where "
            "there is no `sharedFolder`."
        ),
    ] = "/tmp/bequeath"  # noqa: S108 - a container's own
    wall_time: Annotated[
        WallTime | None,
        Field(
            description="How long a job may run from its start; for as long as its service lets "
            "it if not given."
        ),
    ] = None
    ca_file: Annotated[
        ResolvedPath | None,
        Field(
            description="File with the certificates of the authority of the service, PEM; those of "
            "this machine if not given."
        ),
    ] = None

    @classmethod
    def read_short_form(cls, value: Any) -> Any:
        """Refuse keys of the service that have another place here, or none."""
        refused = {fold_word(key): answer for key, answer in cls.refused.items()}
        for key in value if isinstance(value, Mapping) else ():
            if fold_word(str(key)) in refused:
                text, hint = refused[fold_word(str(key))]
                raise Misfit(f"has {str(key)!r}: {text}", at=(str(key),), hint=hint)
        return value

    @property
    def python_there(self) -> str:
        """See :attr:`ClusterService.python_there`."""
        return self.python

    @property
    def wall_s(self) -> float | None:
        """See :attr:`ServiceConfig.wall_s`: that of the jobs."""
        return self.wall_time

    @property
    def mounted(self) -> Mapping[str, str]:
        """Folders of this machine, and the paths at which jobs have them. A section whose keys name
        storages adds those."""
        return self.mounts

    def seen(self, path: str | os.PathLike[str]) -> str | None:
        """Return the path at which jobs have a file or a folder of this machine; None: they do not.

        The innermost mount counts.
        """
        plain = os.path.normpath(path)
        holding = [here for here in self.mounted if f"{plain}/".startswith(f"{here.rstrip('/')}/")]
        if not holding:
            return None
        here = max(holding, key=len)
        return os.path.normpath(f"{self.mounted[here]}/{plain[len(here.rstrip('/')) :]}")

    def authorities(self) -> str:
        """The certificates that its service's own must be signed by, PEM; empty: the system's.
        Reads a file; raises ``OSError``."""
        return "" if self.ca_file is None else self.ca_file.read_text("ascii", "replace")
