"""Packages of the system, installed by its own package manager."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any

from nfs_setup.distro import Distro, distro_of, installed, is_busy, states
from nfs_setup.errors import MachineRefuses
from nfs_setup.host import Host, Ran
from nfs_setup.ledger import Ledger
from nfs_setup.mount_table import mounts
from nfs_setup.step import Change

#: Seconds for a download over a slow line.
_INSTALL_S = 900.0


@dataclass(frozen=True)
class Packages:
    """Packages that are installed."""

    distro: Distro
    names: tuple[str, ...]
    shared: bool = True
    kind: str = "packages"

    @property
    def title(self) -> str:
        """The names of the packages."""
        return f"packages {', '.join(self.names)}"

    def _missing(self, host: Host) -> list[str]:
        there = installed(host, self.distro, self.names)
        return [name for name in self.names if name not in there]

    def change(self, host: Host) -> Change | None:
        """Return the command that installs what is missing."""
        missing = self._missing(host)
        if not missing:
            return None
        command = shlex.join([*self.distro.install, *missing])
        return Change(f"install {', '.join(missing)}", f"$ {command}\n")

    def before(self, host: Host, ledger: Ledger) -> dict[str, Any]:
        """Return all that is installed, so that what comes along is known as well; which packages
        have left their configuration here; and which folders are not there yet."""
        found = states(host, self.distro)
        return {
            "was": sorted(name for name, word in found.items() if word == "installed"),
            "remove": list(self.distro.remove),
            "configured": sorted(name for name, word in found.items() if word == "config-files"),
            "missing": missing_folders(host),
        }

    def apply(self, host: Host) -> None:
        """Install the packages; where their lists are old or missing, fetch these and try again."""
        missing = self._missing(host)
        ran = host.run([*self.distro.install, *missing], limit_s=_INSTALL_S)
        if not ran.ok and self.distro.refresh and not is_busy(ran.err + ran.out):
            host.run(self.distro.refresh, limit_s=_INSTALL_S)
            ran = host.run([*self.distro.install, *missing], limit_s=_INSTALL_S)
        if not ran.ok or self._missing(host):
            raise _failed(ran, ", ".join(missing))

    def after(self, host: Host, data: dict[str, Any]) -> None:
        """Note the packages that came along: the difference to what was there."""
        there = set(data.pop("was"))
        data["came"] = sorted(installed(host, self.distro) - there)


def _failed(ran: Ran, names: str) -> MachineRefuses:
    output = ran.err + ran.out
    if is_busy(output):
        hint = "wait until the other one is done, or end it, and try again"
        return MachineRefuses("the package manager is at work for somebody else", hint=hint)
    if ran.code == 127:
        return MachineRefuses(ran.err.strip(), hint=f"install {names} by hand and try again")
    hint = f"install {names} by hand and try again, or mend the package sources"
    return MachineRefuses(f"cannot install {names}: {ran.message}", hint=hint)


def undo_packages(host: Host, ledger: Ledger, data: dict[str, Any]) -> str:
    """See :class:`nfs_setup.step.Undo`. Removes exactly what came with us; what others need by
    now stays, with all the rest."""
    if data.get("keep"):
        return "the packages stay, as asked"
    distro = distro_of(host)
    now = {name for name, word in states(host, distro).items() if word != "config-files"}
    came = data["came"] if "came" in data else now - set(data["was"])  # died while installing
    came = sorted(set(came) & now)
    for command in _removing(distro, data, came):
        ran = host.run(command, limit_s=_INSTALL_S)
        if not ran.ok and is_busy(ran.err + ran.out):
            raise _failed(ran, ", ".join(came))
        if not ran.ok:
            return f"{', '.join(came)} stay: {ran.message}"
    return remove_leftovers(host, data.get("missing", []))


def _removing(distro: Distro, data: dict[str, Any], came: list[str]) -> list[list[str]]:
    """Return the commands that remove packages; what had left its configuration leaves it again."""
    before = set(data.get("configured", [])) & set(came)
    if not before:
        return [[*data["remove"], *came]] if came else []
    rest = [name for name in came if name not in before]
    found = [[*distro.remove_keeping, *came]]
    return [*found, [*data["remove"], *rest]] if rest else found


#: Each comes with the packages, and holds nothing of anybody else's.
_FOLDERS = ("/var/lib/nfs",)


def missing_folders(host: Host) -> list[str]:
    """Return the state folders that are not there, before packages are installed."""
    return [folder for folder in _FOLDERS if host.stat(folder) is None]


def remove_leftovers(host: Host, missing: list[str]) -> str:
    """Remove the folders that were missing before, and all that is in them. No link is followed.

    Returns:
        Why one was kept; an empty text if none was.
    """
    for folder in missing:
        inside = [m.point for m in mounts(host) if f"{m.point}/".startswith(f"{folder}/")]
        if inside:
            return f"{folder} stays: {inside[0]} is mounted in it"
        if folder in _FOLDERS:  # a ledger that somebody edited removes nothing else
            _remove_all(host, folder)
    return ""


def _remove_all(host: Host, path: str) -> None:
    found = host.stat(path)
    if found is None:
        return
    if found.kind != "folder":
        host.remove(path)
        return
    for name in host.names(path):
        _remove_all(host, f"{path}/{name}")
    host.remove_folder(path)
