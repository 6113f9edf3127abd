"""The base of platforms of Google Cloud: what is looked for here, and asked there, before anything
is ordered."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeVar

from dispatcher.experiment.platform_base import KeyProblem
from dispatcher.http_services.google import EXTRA, MISSING
from dispatcher.platforms.google_cloud.section import GoogleService
from dispatcher.platforms.http_jobs.platform import HttpJobsPlatform
from tuners.plain_json import JsonPath

if TYPE_CHECKING:
    from dispatcher.experiment.all_keys import AllKeys
    from dispatcher.platforms.google_cloud.jobs import GoogleJobs

C = TypeVar("C", bound=GoogleService)

#: Where jobs have buckets as folders.
_BUCKETS = "/gcs/"


class GooglePlatform(HttpJobsPlatform[C]):
    """A platform of jobs of Google Cloud. One of ours writes :meth:`jobs`."""

    has_secrets: ClassVar[bool] = True
    has_output: ClassVar[bool] = True
    packages: ClassVar[Mapping[str, str]] = {"urllib3": EXTRA}
    account_keys: ClassVar[tuple[str, ...]] = ("project", "region", "endpoints")

    @abstractmethod
    def jobs(self, section: C, label: str) -> GoogleJobs:
        """See :meth:`HttpJobsPlatform.jobs`."""
        ...

    def check(self, section: C, at: JsonPath, experiment: AllKeys) -> Iterator[KeyProblem]:
        """See :meth:`Platform.check`: the one who asks, and folders in buckets, as well."""
        yield from super().check(section, at, experiment)
        if section.token is None and not _has_library():
            yield KeyProblem((*at, "platform"), "needs the package google-auth", MISSING)
        root = experiment.weights_root if experiment.keeps_weights else None
        text = "{} in a bucket ({}), where gcsfuse cannot rename a file at once: others would see "
        text += "halves of what is written"
        if isinstance(root, Path) and (there := _in_bucket(section, root)):
            hint = f"write 'weightsRoot: gs://{there.removeprefix(_BUCKETS)}'"
            yield KeyProblem((*at, "mounts"), text.format("has 'weightsRoot'", there), hint)
        shared = section.shared_folder
        if shared is not None and (there := _in_bucket(section, shared)):
            hint = "name a folder of a share, or leave it out: keys come by Secret Manager then"
            yield KeyProblem((*at, "sharedFolder"), text.format("is", there), hint)


def _has_library() -> bool:
    return find_spec("google") is not None and find_spec("google.auth") is not None


def _in_bucket(section: GoogleService, path: Path) -> str:
    """The path that a folder has below that of all buckets; empty: it is in none."""
    there = section.seen(path) or str(path)
    return there if there.startswith(_BUCKETS) else ""
