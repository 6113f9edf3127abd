"""Brings our runtime and the trials' code to pods by ConfigMaps: no registry, and no volume.

They are immutable, named by the digests of their content, shared by all pods of a service, and go
with its end. A server keeps 1 MiB in one, so archives are compressed, and cut in parts.
"""

from __future__ import annotations

import hashlib
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from dispatcher.errors import PermanentBackendError
from dispatcher.platforms.allocations.allocation import AllocationOrder
from dispatcher.platforms.allocations.probe import recorded
from dispatcher.platforms.archives import Archive, Archives
from dispatcher.platforms.bringing import begin_content, with_brought
from dispatcher.platforms.kubernetes.api.errors import AlreadyThere, NotThere
from dispatcher.platforms.kubernetes.api.server import CONFIG_MAPS, ApiServer, Document
from dispatcher.platforms.kubernetes.bodies import ARCHIVES_FOLDER, MANAGED_BY, SERVICE
from dispatcher.platforms.kubernetes.section import KubernetesService
from dispatcher.remote_python.supply import supply
from dispatcher.wheelhouse import WheelCache
from trial_runtime.agent.config import AgentConfig, Brought, BroughtArchive, BroughtWheel

#: Bytes of one part, and of a whole archive when it is compressed: what is more belongs into an
#: image, and a cluster's store is all that its users have.
PART, MOST = 900 << 10, 8 << 20

#: Bytes of an archive that are compressed at all.
MOST_UNPACKED = 256 << 20

BEGIN = "begin.py"

#: Modules whose wheels are more than that.
TOO_LARGE = ("numpy",)

CODE_ELSEWHERE = (
    "name in .bequeathignore what is no code; or put it into the image, or on a volume, and write "
    "'codeFolder' in place of 'bringCode'"
)


class _Part(NamedTuple):
    """A ConfigMap with one file.

    Attributes:
        name: of the ConfigMap.
        file: as pods have it.
        content: of the file.
    """

    name: str
    file: str
    content: bytes


class BroughtMaps:
    """The ConfigMaps of a service.

    Args:
        server: the namespace.
        section: the service's part of the file.
        label: the beginning of the names of all allocations of the service.
        archives: packs them. Raises ``BackendError``.
        probed: the file with what a probe has found in a pod, by which wheels are chosen.
    """

    def __init__(
        self,
        server: ApiServer,
        section: KubernetesService,
        label: str,
        archives: Callable[[], Archives],
        probed: Path | None = None,
    ) -> None:
        self._server = server
        self._section = section
        self._label = label
        self._archives = archives
        self._probed = probed
        self._named: Brought | None = None
        self._parts: list[_Part] = []
        self._is_laid = False

    def bring(self, order: AllocationOrder) -> tuple[AllocationOrder, Sequence[Document]]:
        """Make the ConfigMaps that are not there, and return the order of an agent that begins
        with them, and the sources of the volume that holds them. Blocks.

        Raises:
            BackendError: there is too much code, or the server does not take it.
        """
        config = self.named_in(order.config)
        # The first one, which is small, is asked for with each order: somebody may have removed
        # them, and pods would wait for them for ever.
        first, *others = self._parts
        if self._create(first) or not self._is_laid:
            for part in others:
                self._create(part)
            self._is_laid = True
        arguments = (f"{ARCHIVES_FOLDER}/{BEGIN}",)
        return replace(order, config=config, arguments=arguments), [
            {"configMap": {"name": each.name, "items": [{"key": "part", "path": each.file}]}}
            for each in self._parts
        ]

    def named_in(self, config: AgentConfig) -> AgentConfig:
        """The configuration that names what is brought. Reads all of it the first time."""
        if self._named is None:
            packed = self._archives()
            begin = begin_content()
            parts = [_Part(self._name(begin), BEGIN, begin)]
            named = {}
            for what, archive in (("runtime", packed.runtime), ("code", packed.code)):
                own = list(self._cut(archive, f"the {what}", CODE_ELSEWHERE))
                parts += own
                nbytes = archive.path.stat().st_size
                named[what] = BroughtArchive(archive.digest, nbytes, len(own))
            wheels = []
            for module, archive, first in self._wheels(packed.wheels):
                own = list(self._cut(archive, f"the wheel of {module}", "have it in the image"))
                parts += own
                nbytes = archive.path.stat().st_size
                wheels.append(BroughtWheel(module, archive.digest, nbytes, first, len(own)))
            self._parts = parts
            work = f"{self._section.work_folder}/brought"
            is_alone = not self._section.shares(work)
            self._named = Brought(
                work, named["runtime"], named["code"], alone=is_alone, wheels=tuple(wheels)
            )
        return with_brought(config, self._named)

    def _wheels(self, cache: WheelCache) -> Iterator[tuple[str, Archive, bool]]:
        """The wheels of modules that the image lacks, and whether they come before its own.
        Blocks while pip downloads. Raises ``BackendError``."""
        probed = recorded(self._probed)
        if probed is None:
            return
        supplied = supply(probed, "", cache)
        for module, path in supplied.files.items():
            wheel = supplied.planned.wheels[module]
            yield module, Archive(wheel.digest, path), module in supplied.planned.first

    def _cut(self, archive: Archive, what: str, hint: str) -> Iterator[_Part]:
        """The parts of an archive. Raises ``PermanentBackendError``: it is too large."""
        nbytes = archive.path.stat().st_size
        packed = zlib.compress(archive.path.read_bytes(), 9) if nbytes <= MOST_UNPACKED else b""
        if len(packed) > MOST or not packed:
            size = f"{len(packed) / 2**20:.1f} MiB compressed" if packed else "too much"
            raise PermanentBackendError(
                f"{what} is {size}, and ConfigMaps are for {MOST >> 20} MiB at most",
                hint=hint,
                where=str(archive.path),
            )
        for number, at in enumerate(range(0, len(packed), PART)):
            content = packed[at : at + PART]
            yield _Part(self._name(content), f"{archive.digest}.{number}", content)

    def _name(self, content: bytes) -> str:
        return f"{self._label}-{hashlib.sha256(content).hexdigest()[:20]}"

    def _create(self, part: _Part) -> bool:
        """Make a ConfigMap; false if it is there."""
        body: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": part.name,
                "labels": {MANAGED_BY: "bequeath", SERVICE: self._label},
            },
            "binaryData": {"part": b64encode(part.content).decode()},
            "immutable": True,
        }
        try:
            self._server.create(CONFIG_MAPS, body)
        except AlreadyThere:
            return False  # its name is its content's, which pods look at once more
        return True


def clear_maps(server: ApiServer, label: str) -> None:
    """Delete all ConfigMaps of a service. Raises ``BackendError``."""
    for each in server.list(CONFIG_MAPS, f"{SERVICE}={label}").objects:
        try:
            server.delete(CONFIG_MAPS, str(each["metadata"]["name"]))
        except NotThere:
            continue
