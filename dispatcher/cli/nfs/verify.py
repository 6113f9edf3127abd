"""``bequeath nfs verify``: does a share keep what weights need, from one or more machines?"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dispatcher.cli.arguments import Json
from dispatcher.cli.exit_codes import ExitCode
from dispatcher.errors import BackendError, UserError
from dispatcher.terminal.console import note, print_json, say
from dispatcher.terminal.marked_lines import MarkedLine, show_marked

if TYPE_CHECKING:
    from dispatcher.ssh import SshConnection
    from nfs_setup.verify import Finding, Peer, Place

_MARKS = {
    "passes": ("✓", "green"),
    "note": ("•", "cyan"),
    "slow": ("~", "yellow"),
    "wrong": ("✗", "red"),
}

_LEAST_BYTES, _MOST_BYTES = 1 << 20, 64 << 30
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def verify(
    folder: Annotated[
        str, typer.Argument(metavar="DIR", help="The share, where it is mounted (or any folder).")
    ],
    others: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="HOST[:DIR]",
            help="Ask this machine, too, over SSH ([user@]host, or a Host of ~/.ssh/config), "
            "where the share is at DIR, or at the same place. Can be given again.",
        ),
    ] = None,
    not_here: Annotated[
        bool, typer.Option("--not-here", help="Ask only the machines of --from.")
    ] = False,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Each machine alone, in some seconds: no big file, no pairs."),
    ] = False,
    size: Annotated[str, typer.Option(metavar="SIZE", help="Of the big file: 64M, 2G.")] = "64M",
    wait: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=0.1,
            max=600,
            help="How long to look for what another machine has made.",
        ),
    ] = 80.0,
    python: Annotated[
        str, typer.Option(metavar="PROGRAM", help="A Python of 3.9 or later on the other machines.")
    ] = "python3",
    as_json: Json = False,
) -> None:
    """Measure a share, say what passes, what is slow and what is wrong, and what to change.

    Needs no privileges, and works on whatever file system somebody else has set up: run it as
    the user of the trials. Looks at the mount, writing, owners, room, clocks, habits of the
    file system, speed; and between processes, with --from between all pairs of machines, at
    when new and replaced files are seen, whether bytes agree, whether files are ever torn or
    missing while they are replaced, and at locks. All of it happens in a folder of its own
    below DIR, which is removed. Exit code 1 if anything is wrong; slow is not wrong.
    """
    from nfs_setup.verify import Plan, judged, survey

    plan = Plan(big_bytes=_bytes_of(size), watch_s=wait, quick=quick)
    with contextlib.ExitStack() as closing:
        hosts = others or []
        places = _here(folder, not_here, again=not hosts and not quick, closing=closing)
        places += _other_machines(hosts, folder, python, closing)
        _refuse_doubles([place.peer.name for place in places])
        facts = survey(places, plan, (lambda _: None) if as_json else note)
    findings = judged(facts)
    wrong = any(one.level.value == "wrong" for one in findings)
    if as_json:
        print_json(
            {"ok": not wrong, "findings": [asdict(f) for f in findings], "facts": asdict(facts)}
        )
    else:
        show_findings(findings)
    if wrong:
        raise typer.Exit(ExitCode.GENERAL)


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

    places = [_host_and_path(text, os.path.abspath(folder)) for text in others]
    if places:
        need_paramiko()
    return [Place(_over_ssh(host, python, closing), path) for host, path in places]


def _refuse_doubles(names: Sequence[str]) -> None:
    if not names:
        raise UserError("nobody is left to ask", hint="add --from HOST, or leave --not-here out")
    doubles = sorted({name for name in names if names.count(name) > 1})
    if doubles:
        raise UserError("is given twice", where=f"--from {', '.join(doubles)}")


def _host_and_path(text: str, here: str) -> tuple[str, str]:
    host, colon, path = text.partition(":/")
    if not host or host.startswith("-"):
        raise UserError("is no machine", where=f"--from {text!r}", hint="write HOST or HOST:/DIR")
    return host, os.path.normpath(f"/{path}") if colon else here


def _over_ssh(host: str, python: str, closing: contextlib.ExitStack) -> Peer:
    from dispatcher.ssh import SshTarget, connect
    from nfs_setup.verify.remote_peer import RemotePeer

    user, _, name = host.rpartition("@")
    connection = closing.enter_context(connect(SshTarget(host=name, user=user)))
    return RemotePeer(host, _runner(connection), python)


def _runner(connection: SshConnection) -> Any:
    def run(argv: Sequence[str], stdin: bytes, limit_s: float) -> Any:
        from dispatcher.ssh import CommandTimedOut
        from nfs_setup.host import Ran
        from nfs_setup.verify import PeerLost

        try:
            ran = connection.run(argv, stdin=stdin, limit_s=limit_s)
        except CommandTimedOut:
            return Ran(124, "", "")
        except BackendError as error:
            raise PeerLost(error.message, hint=error.hint) from error
        out, err = (part.decode("utf-8", "replace") for part in (ran.out, ran.err))
        return Ran(ran.code, out, err)

    return run


def _bytes_of(text: str) -> int:
    number, unit = text.rstrip("KMGkmg"), text[len(text.rstrip("KMGkmg")) :].upper()
    if not number.isdigit() or unit not in _UNITS:
        raise UserError("is no size", where=f"--size {text!r}", hint="write it as 64M or 2G")
    nbytes = int(number) * _UNITS[unit]
    if not _LEAST_BYTES <= nbytes <= _MOST_BYTES:
        raise UserError("is not between 1M and 64G", where=f"--size {text!r}")
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
