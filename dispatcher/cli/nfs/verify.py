"""``bequeath nfs verify``: does a share keep what weights need, from one or more machines?"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from dispatcher.cli.arguments import Json
from dispatcher.cli.exit_codes import ExitCode
from dispatcher.cli.nfs import arguments as options
from dispatcher.errors import DispatcherError, PermanentBackendError, UserError
from dispatcher.terminal.console import note, print_json, say
from dispatcher.terminal.marked_lines import MarkedLine, show_marked

if TYPE_CHECKING:
    from nfs_setup.cluster.members import Connect, Inventory
    from nfs_setup.verify import Finding, Peer, Place, Survey

_MARKS = {
    "passes": ("✓", "green"),
    "note": ("•", "cyan"),
    "slow": ("~", "yellow"),
    "wrong": ("✗", "red"),
}

_LEAST_BYTES, _MOST_BYTES = 1 << 20, 64 << 30


def verify(
    folder: options.VerifiedFolder,
    others: options.FromHosts = None,
    not_here: options.NotHere = False,
    quick: options.Quick = False,
    size: options.BigFileSize = "64M",
    wait: options.Wait = 80.0,
    python: options.OtherPython = "python3",
    as_json: Json = False,
) -> None:
    """Measure a share; show what passes, what is slow, what is wrong, and what to change.

    Needs no privileges, and works on whatever file system somebody else has set up: run it as
    the user of the trials. Looks at the mount, writing, owners, room, clocks, habits of the
    file system, speed; and between processes, with --from between all pairs of machines, at
    when new and replaced files are seen, whether bytes agree, whether files are ever torn or
    missing while they are replaced, and at locks. All of it happens in a folder of its own
    below DIR, which is removed. Exit code 1 if anything is wrong; slow is not wrong.
    """
    from nfs_setup.verify import Plan, survey

    plan = Plan(big_bytes=bytes_of(size), watch_s=wait, quick=quick)
    with contextlib.ExitStack() as closing:
        hosts = others or []
        places = _here(folder, not_here, again=not hosts and not quick, closing=closing)
        places += _other_machines(hosts, folder, python, closing)
        _refuse_doubles([place.peer.name for place in places])
        facts = survey(places, plan, (lambda _: None) if as_json else note)
    if not print_survey(facts, as_json):
        raise typer.Exit(ExitCode.GENERAL)


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
    from nfs_setup.verify import Plan, survey

    with contextlib.ExitStack() as closing:
        places, errors = _clients(inventory, connect, closing)
        if not places:
            raise typer.Exit(report(errors[0]))
        facts = survey(places, Plan(quick=quick), (lambda _: None) if as_json else note)
    well = print_survey(facts, as_json, errors)
    if not as_json:
        for error in errors:
            report(error)
    if errors or not well:
        raise typer.Exit(ExitCode.ENVIRONMENT if well else ExitCode.GENERAL)


def _clients(
    inventory: Inventory, connect: Connect, closing: contextlib.ExitStack
) -> tuple[list[Place], list[DispatcherError]]:
    """Return the clients, logged in to until the end of the context, and errors of the others."""
    from dispatcher.cli.nfs.login import setup_program
    from nfs_setup.cluster.asking import RemotePeer, as_owner, look
    from nfs_setup.errors import SetupError
    from nfs_setup.request import ClientRequest
    from nfs_setup.verify import Place

    program = setup_program()
    places: list[Place] = []
    errors: list[DispatcherError] = []
    for member in inventory.clients:
        assert isinstance(member.request, ClientRequest)
        try:
            remote = closing.enter_context(connect(member))
            access = look(remote, member, needs_root=False)
        except SetupError as error:
            errors.append(PermanentBackendError(error.message, hint=error.hint, where=member.name))
            continue
        owner = as_owner(inventory, member, access)
        peer = RemotePeer(member.name, remote, program, member.python, owner)
        places.append(Place(peer, member.request.point, access.identity))
    return places, errors


def print_survey(
    facts: Survey, as_json: bool, unasked: Sequence[DispatcherError] | None = None
) -> bool:
    """Print the findings of a survey.

    Args:
        facts: what was measured.
        as_json: print one JSON document, with the facts.
        unasked: errors of machines that could not be asked, which stand in the document.

    Returns:
        Whether nothing is wrong with the share.
    """
    from nfs_setup.verify import judged

    findings = judged(facts)
    well = all(one.level.value != "wrong" for one in findings)
    if not as_json:
        show_findings(findings)
        return well
    document: dict[str, Any] = {"ok": well and not unasked}
    if unasked is not None:
        document["unasked"] = [
            {"host": e.where, "message": e.message, "hint": e.hint} for e in unasked
        ]
    document["findings"] = [asdict(one) for one in findings]
    print_json({**document, "facts": asdict(facts)})
    return well


def _here(
    folder: str, not_here: bool, *, again: bool, closing: contextlib.ExitStack
) -> list[Place]:
    """Return this machine. Alone, it is measured by two processes, like two trials."""
    from nfs_setup.verify import LocalPeer, Place

    places = []
    for name in [] if not_here else ["here", "here again"] if again else ["here"]:
        local = LocalPeer(name)
        closing.callback(local.close)
        places.append(Place(local, os.path.abspath(folder), "here"))
    return places


def _other_machines(
    others: Sequence[str], folder: str, python: str, closing: contextlib.ExitStack
) -> list[Place]:
    """Return the other machines, logged in to."""
    from dispatcher.cli.hosts.check_targets import need_paramiko
    from nfs_setup.verify import Place

    places = [host_and_path(text, os.path.abspath(folder)) for text in others]
    if places:
        need_paramiko()
    return [Place(_over_ssh(host, python, closing), path) for host, path in places]


def _refuse_doubles(names: Sequence[str]) -> None:
    if not names:
        raise UserError("nobody is left to ask", hint="add --from HOST, or leave --not-here out")
    doubles = sorted({name for name in names if names.count(name) > 1})
    if doubles:
        raise UserError("is given twice", where=f"--from {', '.join(doubles)}")


def host_and_path(text: str, here: str) -> tuple[str, str]:
    """Return the machine and the folder of ``HOST[:/DIR]``; without one, the folder is ``here``.

    Raises:
        UserError: if no machine is named.
    """
    host, colon, path = text.partition(":/")
    if not host or host.startswith("-"):
        raise UserError("is no machine", where=f"--from {text!r}", hint="write HOST or HOST:/DIR")
    return host, os.path.normpath(f"/{path}") if colon else here


def _over_ssh(host: str, python: str, closing: contextlib.ExitStack) -> Peer:
    from dispatcher.cli.nfs.login import OverSsh, setup_program
    from dispatcher.ssh import SshTarget, connect
    from nfs_setup.cluster.asking import RemotePeer

    user, _, name = host.rpartition("@")
    connection = closing.enter_context(connect(SshTarget(host=name, user=user)))
    return RemotePeer(host, OverSsh(connection), setup_program(), python)


def bytes_of(text: str) -> int:
    """Return the bytes of a big file, from ``64M`` or ``2G``.

    Raises:
        UserError: if it is no size, or one that tells nothing or fills disks.
    """
    from dispatcher.experiment.quantities import parse_size

    where = f"--size {text!r}"
    try:
        nbytes = parse_size(text)
    except ValueError:
        raise UserError("is no size", where=where, hint="write it as 64M or 2G") from None
    if not _LEAST_BYTES <= nbytes <= _MOST_BYTES:
        raise UserError("is not between 1M and 64G", where=where)
    return nbytes


def show_findings(findings: Sequence[Finding]) -> None:
    """Print a line for each finding, with what to change below it, and a sum."""
    lines = []
    for one in findings:
        level = one.level.value
        word = "" if level == "passes" else level
        text = f"{one.seen} [{one.where}]"
        lines.append(MarkedLine(*_MARKS[level], word, one.check, text, one.change))
    show_marked(lines)
    wrong = sum(one.level.value == "wrong" for one in findings)
    slow = sum(one.level.value == "slow" for one in findings)
    say(f"{wrong} wrong, {slow} slow" if wrong or slow else "nothing is wrong, nothing is slow")
