"""Requests for machines in their order (waves, of which each waits for the one before), and how
they end."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from nfs_setup.cluster.members import Inventory, Member
from nfs_setup.errors import SetupError
from nfs_setup.report import Report
from nfs_setup.request import ClientRequest, Request, StatusRequest, UndoRequest


@dataclass(frozen=True)
class Order:
    """A request for a machine."""

    member: Member
    request: Request


@dataclass(frozen=True)
class Wave:
    """Orders that run at the same time. ``otherwise`` is why they do not, if the wave before
    did not go well everywhere."""

    orders: tuple[Order, ...]
    otherwise: str = ""


def set_up(inventory: Inventory, *, dry_run: bool = False) -> tuple[Wave, ...]:
    """Return the waves of a set-up: the server before all clients. A dry run needs no order."""
    orders = [Order(m, replace(m.request, dry_run=dry_run)) for m in inventory.members]
    if dry_run:
        return (Wave(tuple(orders)),)
    return (
        Wave(tuple(orders[:1])),
        Wave(tuple(orders[1:]), "there is nothing to mount: the server is not set up"),
    )


def take_back(
    inventory: Inventory, *, keep_packages: bool = False, dry_run: bool = False
) -> tuple[Wave, ...]:
    """Return the waves of an undo: all clients before the server, so that no program is left with a
    mount that is gone.

    Args:
        inventory: the machines.
        keep_packages: whether packages stay installed.
        dry_run: whether to show only what would be done, everywhere at once.
    """

    def order(member: Member) -> Order:
        request = member.request
        target = request.point if isinstance(request, ClientRequest) else request.path
        asked = UndoRequest(target, keep_packages, dry_run=dry_run, missing_is_fine=True)
        return Order(member, asked)

    clients = Wave(tuple(order(client) for client in inventory.clients))
    server = (order(inventory.server),)
    if dry_run:
        return (Wave((*server, *clients.orders)),)
    return clients, Wave(server, "a client may still mount the folder, so it stays exported")


def status(inventory: Inventory) -> tuple[Wave, ...]:
    """Return one wave that asks all machines how they stand."""
    return (Wave(tuple(Order(member, StatusRequest()) for member in inventory.members)),)


WAITING, LOOKING, WORKING = "waiting", "looking", "working"

DONE, FAILED, LEFT_OUT, UNKNOWN = "done", "failed", "left out", "unknown"

_OVER = frozenset({DONE, FAILED, LEFT_OUT, UNKNOWN})


@dataclass
class Outcome:
    """How one machine's part of a run stands, and how it ended.

    Attributes:
        state: ``waiting``, ``looking`` (login, Python, root), ``waiting``, ``working``; then
            ``done``, ``failed``, ``left out`` (nothing was done there), or ``unknown``: it was
            under way when we stopped waiting.
        error: why it failed or was left out.
    """

    order: Order
    state: str = WAITING
    report: Report | None = None
    error: SetupError | None = None
    seconds: float = 0.0

    @property
    def name(self) -> str:
        """The name of the machine."""
        return self.order.member.name

    @property
    def over(self) -> bool:
        """Whether nothing more will happen there."""
        return self.state in _OVER

    @property
    def word(self) -> str:
        """The state; for what is done, what was done."""
        if self.state != DONE or self.report is None or self.report.verb == "status":
            return self.state
        if not self.report.changed:
            return "nothing to undo" if self.report.verb == "undo" else "as it should be"
        if self.report.dry_run:
            return "planned"
        return "undone" if self.report.verb == "undo" else "set up"

    def plain(self) -> dict[str, Any]:
        """The outcome as JSON has it."""
        return {
            "host": self.name,
            "role": self.order.member.role,
            "state": self.state,
            "seconds": round(self.seconds, 3),
            "report": None if self.report is None else self.report.plain(),
            "error": None if self.error is None else self.error.plain(),
        }
