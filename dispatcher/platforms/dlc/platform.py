"""The platform ``dlc``: an agent in each of several jobs of PAI-DLC."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from dispatcher.experiment.platform_base import KeyProblem
from dispatcher.platforms.alibaba_cloud.platform import AlibabaPlatform
from dispatcher.platforms.dlc.section import DlcSection
from tuners.plain_json import JsonPath

if TYPE_CHECKING:
    from dispatcher.experiment.all_keys import AllKeys
    from dispatcher.platforms.dlc.jobs import DlcJobs


class DlcPlatform(AlibabaPlatform[DlcSection]):
    """The platform of PAI-DLC, which shows the variables of a job to its workspace."""

    protocol = 2
    section = DlcSection
    has_output: ClassVar[bool] = True

    def jobs(self, section: DlcSection, label: str) -> DlcJobs:
        """See :meth:`HttpJobsPlatform.jobs`."""
        from dispatcher.platforms.dlc.jobs import DlcJobs

        return DlcJobs(section, label)

    def check(self, section: DlcSection, at: JsonPath, experiment: AllKeys) -> Iterator[KeyProblem]:
        """See :meth:`Platform.check`: folders in buckets, as well."""
        yield from super().check(section, at, experiment)
        root = experiment.weights_root if experiment.keeps_weights else None
        better = "write 'weightsRoot: oss://BUCKET/FOLDER', with 'weightsRootOptions'"
        folders = {"'weightsRoot'": (root, better)}
        folders["'sharedFolder'"] = (section.shared_folder, "name a folder of NAS or CPFS")
        for key, (folder, hint) in folders.items():
            if isinstance(folder, Path) and section.is_in_bucket(folder):
                text = f"has {key} in a bucket, where ossfs renames no file at once"
                yield KeyProblem((*at, "dataSources"), text, hint)
