"""A service that runs and starts at boot, or one that does neither."""

from __future__ import annotations

import posixpath
import shlex
from dataclasses import dataclass
from typing import Any

from nfs_setup.errors import MachineRefuses
from nfs_setup.host import Host
from nfs_setup.ledger import Ledger
from nfs_setup.services import START_S, Lines, Services, State, services_of
from nfs_setup.step import Change


@dataclass(frozen=True)
class Service:
    """A service in a wanted state. ``why`` stands in the text; ``ours``: it came with packages
    that we installed, so that there is no state before to go back to."""

    services: Services
    name: str
    on: bool = True
    why: str = ""
    ours: bool = False
    shared: bool = True
    kind: str = "service"

    @property
    def title(self) -> str:
        """The name of the service."""
        return f"service {self.name}" + ("" if self.on else " off")

    def change(self, host: Host) -> Change | None:
        """Return the commands that are needed."""
        commands = self._commands(host)
        if not commands:
            return None
        text = f"{'start' if self.on else 'stop'} {self.name}" + (self.why and f" ({self.why})")
        return Change(text, "".join(f"$ {shlex.join(command)}\n" for command in commands))

    def _commands(self, host: Host) -> Lines:
        return _commands(self.services, self.name, self.services.state(host, self.name), self.on)

    def before(self, host: Host, ledger: Ledger) -> dict[str, Any]:
        """Return the state of the service, and the links of all services."""
        if self.ours:
            return {"name": self.name, "active": False, "enabled": False, "changed": {}}
        state = vars(self.services.state(host, self.name))
        return {"name": self.name, **state, "links": boot_links(host)}

    def apply(self, host: Host) -> None:
        """Run the commands, then look: some scripts fail without saying so."""
        message = ""
        for command in self._commands(host):
            ran = host.run(command, limit_s=START_S)
            message = ran.message if not ran.ok or "not starting" in ran.out.lower() else message
            if not ran.ok:
                raise MachineRefuses(message, where=" ".join(command), hint=_hint(self, message))
        if self.services.state(host, self.name).active is not self.on:
            verb = "start" if self.on else "stop"
            raise MachineRefuses(
                f"did not {verb}: {message}", where=self.name, hint=_hint(self, message)
            )

    def after(self, host: Host, data: dict[str, Any]) -> None:
        """Note the links that have changed."""
        if "links" in data:
            data["changed"] = difference(data.pop("links"), boot_links(host))


def _hint(step: Service, message: str) -> str:
    if "sockets" in message:  # in the message of rpc.nfsd
        return "something else listens at port 2049; who, says: ss -ltnp sport = :2049"
    if step.services.systemd:
        return f"look at: journalctl -u {step.name}"
    return "look at the system's log; the kernel may lack the NFS server (modprobe nfsd)"


def _commands(services: Services, name: str, now: State, on: bool) -> Lines:
    found: Lines = ()
    if now.enabled is not on:
        found += services.commands("enable" if on else "disable", name)
    if now.active is not on:
        found += services.commands("start" if on else "stop", name)
    return found


def undo_service(host: Host, ledger: Ledger, data: dict[str, Any]) -> str:
    """See :class:`nfs_setup.step.Undo`. Puts a service back as it was, its links included."""
    services, name = services_of(host), data["name"]
    now = services.state(host, name)
    commands: Lines = ()
    if now.active is not data["active"]:
        commands += services.commands("start" if data["active"] else "stop", name)
    if "changed" not in data:  # died on its way: what differs by now is its doing
        data["changed"] = difference(data["links"], boot_links(host))
    for command in commands:
        ran = host.run(command, limit_s=START_S)
        if not ran.ok:
            raise MachineRefuses(ran.message, where=" ".join(command))
    put_back(host, data["changed"])
    if services.systemd and data["changed"]:
        host.run(["systemctl", "daemon-reload"])
    now = services.state(host, name)
    if now.enabled is not data["enabled"]:  # by something else than the links we know
        for command in services.commands("enable" if data["enabled"] else "disable", name):
            host.run(command, limit_s=START_S)
    if now.active is not data["active"]:
        raise MachineRefuses(f"does not {'start' if data['active'] else 'stop'}", where=name)
    return ""


_LEVELS = tuple(f"/etc/rc{level}.d" for level in "0123456S")
_UNITS = "/etc/systemd/system"

#: A path, and where it leads; an empty text for a folder of links.
Links = dict[str, str]


def boot_links(host: Host) -> Links:
    """Return all links in the folders of run levels and of systemd, and these folders."""
    links: Links = {}
    for folder in (*_LEVELS, _UNITS):
        _collect(host, folder, links, deeper=folder == _UNITS)
    return links


def difference(before: Links, after: Links) -> dict[str, list[str | None]]:
    """Return the changes, as ``path → [before, after]``; None: it is not there."""
    paths = sorted({*before, *after})
    pairs = {path: [before.get(path), after.get(path)] for path in paths}
    return {path: pair for path, pair in pairs.items() if pair[0] != pair[1]}


def put_back(host: Host, changed: dict[str, list[str | None]]) -> None:
    """Put links back as they were, unless somebody has changed them since; remove empty folders."""
    now = boot_links(host)
    for path, (before, after) in sorted(changed.items(), reverse=True):
        if now.get(path) != after:
            continue
        if before is None and after == "":
            host.remove_folder(path)
        elif before is None or after is not None:
            host.remove(path)
    for path, (before, after) in sorted(changed.items()):
        if before is None or now.get(path) != after or host.stat(path) is not None:
            continue
        if before == "":
            host.make_folder(path, 0o755)
        else:
            host.make_link(path, before)


def _collect(host: Host, folder: str, links: Links, *, deeper: bool) -> None:
    if host.stat(folder) is None:
        return
    links[folder] = ""
    for name in host.names(folder):
        path = posixpath.join(folder, name)
        target = host.link(path)
        if target is not None:
            links[path] = target
        elif deeper and name.endswith((".wants", ".requires")):
            _collect(host, path, links, deeper=False)
