"""``bequeath nfs cluster --verify``: the share of an inventory, measured from all its clients."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import typer

from dispatcher.cli.exit_codes import ExitCode
from dispatcher.errors import BequeathError, PermanentBackendError
from dispatcher.terminal.console import note

if TYPE_CHECKING:
    from nfs_setup.cluster.members import Inventory
    from nfs_setup.cluster.remote import Connect
    from nfs_setup.verify import Place


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
    from dispatcher.cli.nfs.verify import print_survey
    from nfs_setup.verify import Plan, survey

    with contextlib.ExitStack() as closing:
        places, errors = _places(inventory, connect, closing)
        if not places:
            raise typer.Exit(report(errors[0]))
        facts = survey(places, Plan(quick=quick), (lambda _: None) if as_json else note)
    well = print_survey(facts, as_json, errors)
    if not as_json:
        for error in errors:
            report(error)
    if errors or not well:
        raise typer.Exit(ExitCode.ENVIRONMENT if well else ExitCode.GENERAL)


def _places(
    inventory: Inventory, connect: Connect, closing: contextlib.ExitStack
) -> tuple[list[Place], list[BequeathError]]:
    """Return the clients, logged in to until the end of the context, and errors of the others."""
    from dispatcher.cli.nfs.login import setup_program
    from dispatcher.cli.nfs.verify import probe_runner
    from nfs_setup.cluster.asking import as_owner, look
    from nfs_setup.errors import SetupError
    from nfs_setup.request import ClientRequest
    from nfs_setup.verify import Place
    from nfs_setup.verify.remote_peer import RemotePeer

    program = setup_program()
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
        run = probe_runner(remote, as_owner(inventory, member, ground))
        peer = RemotePeer(member.name, run, program, member.python)
        places.append(Place(peer, member.request.point, ground.identity))
    return places, errors
