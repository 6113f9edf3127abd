"""A service that runs and starts at boot, or one that does neither."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nfs_setup.errors import MachineRefuses
from nfs_setup.host import Host
from nfs_setup.ledger import Ledger
from nfs_setup.services import START_S, Services, State, services_of
from nfs_setup.step import Change


@dataclass(frozen=True)
class Service:
    """A service in a wanted state. ``why`` stands in the text."""

    services: Services
    name: str
    on: bool = True
    why: str = ""
    shared: bool = True
    kind: str = "service"

    @property
    def words(self) -> str:
        """The service."""
        return f"service {self.name}" + ("" if self.on else " off")

    def change(self, host: Host) -> Change | None:
        """The commands that are needed."""
        commands = self._commands(host)
        if not commands:
            return None
        text = f"{'start' if self.on else 'stop'} {self.name}" + (self.why and f" ({self.why})")
        return Change(text, "".join(f"$ {' '.join(command)}\n" for command in commands))

    def _commands(self, host: Host) -> list[list[str]]:
        return _commands(self.services, self.name, self.services.state(host, self.name), self.on)

    def before(self, host: Host, ledger: Ledger) -> dict[str, Any]:
        """How it stands."""
        return {"name": self.name, **vars(self.services.state(host, self.name))}

    def apply(self, host: Host) -> None:
        """Run the commands, then look: some scripts fail without saying so."""
        said = ""
        for command in self._commands(host):
            ran = host.run(command, limit_s=START_S)
            said = ran.said if not ran.ok or "not starting" in ran.out.lower() else said
            if not ran.ok:
                raise MachineRefuses(said, where=" ".join(command), hint=_hint(self))
        if self.services.state(host, self.name).active is not self.on:
            verb = "start" if self.on else "stop"
            raise MachineRefuses(f"did not {verb}: {said}", where=self.name, hint=_hint(self))

    def after(self, host: Host, data: dict[str, Any]) -> None:
        """Everything was known before."""


def _hint(step: Service) -> str:
    if step.services.systemd:
        return f"look at: journalctl -u {step.name}"
    return "look at the system's log; the kernel may lack the NFS server (modprobe nfsd)"


def _commands(services: Services, name: str, now: State, on: bool) -> list[list[str]]:
    found = []
    if now.enabled is not on:
        found.append(services.enable(name) if on else services.disable(name))
    if now.active is not on:
        found.append(services.start(name) if on else services.stop(name))
    return found


def undo_service(host: Host, ledger: Ledger, data: dict[str, Any]) -> str:
    """As it stood before."""
    services, name = services_of(host), data["name"]
    now = services.state(host, name)
    commands = []
    if now.active is not data["active"]:
        commands.append(services.start(name) if data["active"] else services.stop(name))
    if now.enabled is not data["enabled"]:
        commands.append(services.enable(name) if data["enabled"] else services.disable(name))
    for command in commands:
        ran = host.run(command, limit_s=START_S)
        if not ran.ok:
            raise MachineRefuses(ran.said, where=" ".join(command))
    return ""
