"""``bequeath nfs cluster --verify``: the share of an inventory, measured from all its clients."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from dispatcher.cli.exit_codes import ExitCode
from dispatcher.errors import BequeathError, PermanentBackendError
from dispatcher.terminal.console import note, print_json

if TYPE_CHECKING:
    from nfs_setup.cluster.members import Inventory
    from nfs_setup.cluster.remote import Connect, Remote
    from nfs_setup.host import Ran
    from nfs_setup.verify import Place
    from nfs_setup.verify.remote_peer import Run


def verify_cluster(inventory: Inventory, connect: Connect, *, quick: bool, as_json: bool) -> None:
    """Measure from all clients that can be reached, and print the findings.

    Args:
        inventory: the server and its clients.
        connect: logs in to a member.
        quick: measure each client alone, in some seconds.
        as_json: print one JSON document.

    Raises:
        typer.Exit: if anything is wrong (1), or a client could not be asked (4).
    """
    from dispatcher.cli.failure import report
    from dispatcher.cli.nfs.verify import show_findings
    from nfs_setup.verify import Plan, judged, survey

    with contextlib.ExitStack() as closing:
        places, errors = _places(inventory, connect, closing)
        if not places:
            raise typer.Exit(report(errors[0]))
        facts = survey(places, Plan(quick=quick), (lambda _: None) if as_json else note)
    findings = judged(facts)
    wrong = any(one.level.value == "wrong" for one in findings)
    if as_json:
        unasked = [{"host": e.where, "message": e.message, "hint": e.hint} for e in errors]
        print_json(
            {
                "ok": not wrong and not errors,
                "unasked": unasked,
                "findings": [asdict(one) for one in findings],
                "facts": asdict(facts),
            }
        )
    else:
        show_findings(findings)
        for error in errors:
            report(error)
    if wrong or errors:
        raise typer.Exit(ExitCode.GENERAL if wrong else ExitCode.ENVIRONMENT)


def _places(
    inventory: Inventory, connect: Connect, closing: contextlib.ExitStack
) -> tuple[list[Place], list[BequeathError]]:
    """Return the clients, logged in to until the end of the context, and errors of the others."""
    from nfs_setup.cluster.as_owner import as_owner
    from nfs_setup.cluster.ground import look
    from nfs_setup.errors import SetupError
    from nfs_setup.request import ClientRequest
    from nfs_setup.verify import Place
    from nfs_setup.verify.remote_peer import RemotePeer

    places: list[Place] = []
    errors: list[BequeathError] = []
    for member in inventory.clients:
        assert isinstance(member.request, ClientRequest)
        try:
            remote = closing.enter_context(connect(member))
            ground = look(remote, member, needs_root=False)
        except SetupError as error:
            errors.append(PermanentBackendError(error.message, hint=error.hint, where=member.name))
            continue
        peer = RemotePeer(
            member.name, _runner(remote, as_owner(inventory, member, ground)), member.python
        )
        places.append(Place(peer, member.request.point, ground.identity))
    return places, errors


def _runner(remote: Remote, prefix: Sequence[str]) -> Run:
    def run(argv: Sequence[str], stdin: bytes, limit_s: float) -> Ran:
        from nfs_setup.cluster.remote import Unreachable
        from nfs_setup.verify import PeerLost

        try:
            return remote.run((*prefix, *argv), stdin=stdin, limit_s=limit_s)
        except Unreachable as error:
            raise PeerLost(error.message, hint=error.hint) from error

    return run
