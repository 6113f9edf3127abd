"""``bequeath hosts``: machines made known, looked over, and forgotten."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dispatcher.cli.arguments import Json, Yes, confirmed
from dispatcher.cli.exit_codes import ExitCode
from dispatcher.cli.lazy_group import CommandEntry, Table
from dispatcher.errors import PermanentBackendError, UserError
from dispatcher.safe_text import safe_text
from dispatcher.terminal.console import Column, heading, note, print_json, print_table, say

if TYPE_CHECKING:
    from dispatcher.cli.hosts.check_targets import CheckTarget
    from dispatcher.findings import Finding
    from dispatcher.ssh.scanning import OfferedKeys

HOSTS: Table = {
    "add": CommandEntry("cli.hosts.verbs:add", "Show a machine's fingerprint and record its key."),
    "check": CommandEntry(
        "cli.hosts.verbs:check", "Log in to machines and look whether trials can run there."
    ),
    "list": CommandEntry("cli.hosts.verbs:list_", "The machines that were recorded."),
    "remove": CommandEntry("cli.hosts.verbs:remove", "Forget machines."),
    "tidy": CommandEntry(
        "cli.hosts.tidy:tidy", "Remove what old experiments have left on machines."
    ),
}

_MOST_AT_ONCE = 8
_MARKS = {"ok": "✓", "note": "•", "problem": "✗"}

Hosts = Annotated[
    list[str],
    typer.Argument(
        metavar="HOST",
        help="[USER@]HOST[:PORT]; HOST may be a name of ~/.ssh/config.",
        show_default=False,
    ),
]
Jump = Annotated[
    str,
    typer.Option(
        "--jump",
        "-J",
        metavar="HOST",
        help="Get there by way of this machine.",
        show_default=False,
    ),
]


def add(
    hosts: Hosts,
    fingerprint: Annotated[
        str,
        typer.Option(
            metavar="SHA256:…",
            help="Record it without asking if it shows this, else refuse.",
            show_default=False,
        ),
    ] = "",
    jump: Jump = "",
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Show the fingerprint of a machine's host key and record it, so that logins are allowed.

    Compare it with what `ssh-keygen -lf` prints on that machine: an attacker in between would show
    another one. Recorded in a file of our own; ~/.ssh/known_hosts is read as well and never
    changed. Nothing is sent to the machine.
    """
    from dispatcher.cli.hosts.check_targets import target_named
    from dispatcher.ssh.scanning import learn, look_at_keys

    if fingerprint and len(hosts) > 1:
        raise UserError("a fingerprint is that of one machine", hint="add them one by one")
    done = []
    for text in hosts:
        shown = look_at_keys(target_named(text, jump))
        if not as_json:
            _show_keys(text, shown)
        _agree(text, shown, fingerprint, yes=yes, as_json=as_json)
        path = learn(shown, fingerprint)
        done.append(_plain(text, shown))
        if not as_json:
            say(f"recorded in {path}")
    if as_json:
        print_json({"hosts": done})


def _agree(text: str, shown: OfferedKeys, wanted: str, *, yes: bool, as_json: bool) -> None:
    prints = {key.fingerprint for key in shown.keys}
    if wanted:
        if wanted not in prints:
            offered = ", ".join(sorted(prints))
            raise PermanentBackendError(
                f"does not show that fingerprint, but {offered}: it is not recorded",
                hint="is it the right machine? if so, somebody may be in between",
                where=text,
            )
        return
    if as_json and not yes and not shown.known:
        raise UserError("with --json, add --yes or --fingerprint", where=text)
    if not shown.known:
        confirmed(f"Is this what {text} has?", yes)


def _show_keys(text: str, shown: OfferedKeys) -> None:
    say(heading(safe_text(text)) + (" (known)" if shown.known else ""))
    for key in shown.keys:
        say(f"  {key.fingerprint}  {safe_text(key.kind)}")


def _plain(text: str, shown: OfferedKeys) -> dict[str, Any]:
    keys = [{"kind": key.kind, "fingerprint": key.fingerprint} for key in shown.keys]
    return {"host": text, "name": shown.name, "keys": keys, "was_known": shown.known}


def list_(as_json: Json = False) -> None:
    """List the machines that were recorded with `bequeath hosts add`."""
    from dispatcher.ssh.known_hosts import our_file
    from dispatcher.ssh.scanning import our_hosts

    lines = our_hosts()
    if as_json:
        rows = [
            {"name": x.names, "kind": x.key.kind, "fingerprint": x.key.fingerprint} for x in lines
        ]
        print_json({"file": str(our_file()), "hosts": rows})
    elif lines:
        columns = [Column("host"), Column("key"), Column("fingerprint")]
        print_table(columns, [(x.names, x.key.kind, x.key.fingerprint) for x in lines])
    else:
        note("no machine was recorded yet: bequeath hosts add HOST")


def remove(hosts: Hosts, yes: Yes = False, as_json: Json = False) -> None:
    """Forget machines that were recorded with `bequeath hosts add`.

    ~/.ssh/known_hosts stays as it is (`ssh-keygen -R` changes it).
    """
    from dispatcher.cli.hosts.check_targets import target_named
    from dispatcher.ssh.scanning import forget

    targets = [target_named(text) for text in hosts]
    confirmed(f"Forget {', '.join(hosts)}?", yes)
    removed = {text: forget(target) for text, target in zip(hosts, targets, strict=True)}
    if as_json:
        print_json({"removed": removed})
    for text, count in removed.items():
        if not as_json:
            say(f"{safe_text(text)}: {count} keys removed" if count else f"{text}: was not known")
    if not all(removed.values()):
        raise typer.Exit(ExitCode.GENERAL)


def check(
    arguments: Annotated[
        list[str],
        typer.Argument(
            metavar="TARGET",
            help="An experiment file, for its machines and schedulers; or a machine, as "
            "[USER@]HOST[:PORT].",
            show_default=False,
        ),
    ],
    python: Annotated[
        str, typer.Option(metavar="PROGRAM", help="The Python there, for machines named here.")
    ] = "python3",
    weights: Annotated[
        str,
        typer.Option(
            metavar="DIR",
            help="The weights root there, for machines named here.",
            show_default=False,
        ),
    ] = "",
    jump: Jump = "",
    as_json: Json = False,
) -> None:
    """Log in to each machine and look whether trials can run there. Starts nothing.

    Looks at the login, Python and its modules, room on the disk, the clock, GPUs, and whether
    the weights root is there, can be written and is the same folder as here. Modules that will be
    brought there are fetched to this machine, if it has not got them. A scheduler that a file
    names is asked for its limits and for what this user may do there. Exit code 1 if a machine has
    a problem.
    """
    from dispatcher.cli.hosts.check_targets import check_targets, look_at_all
    from dispatcher.findings import Severity

    options = {"python": python, "weights": weights, "jump": jump}
    with ExitStack() as closing:
        targets = [one for word in arguments for one in check_targets(word, closing, **options)]
        answers = look_at_all(targets)
    bad = [any(f.severity is Severity.PROBLEM for f in findings) for findings in answers]
    if as_json:
        rows = [
            {"name": one.host.name, "host": one.host.label, "ok": not wrong}
            | {"findings": [finding.to_json("verdict") for finding in findings]}
            for one, findings, wrong in zip(targets, answers, bad, strict=True)
        ]
        print_json({"ok": not any(bad), "hosts": rows})
    else:
        _show_answers(targets, answers)
    if any(bad):
        raise typer.Exit(ExitCode.GENERAL)


def _show_answers(targets: list[CheckTarget], answers: list[list[Finding]]) -> None:
    topics = list(dict.fromkeys(f.topic for findings in answers for f in findings))
    columns = [Column("machine"), *(Column(topic) for topic in topics)]
    rows = []
    for one, findings in zip(targets, answers, strict=True):
        marks = {f.topic: _MARKS[f.severity] for f in reversed(findings)}
        rows.append([one.host.name, *(marks.get(topic, "-") for topic in topics)])
    print_table(columns, rows)
    for one, findings in zip(targets, answers, strict=True):
        say()
        say(heading(safe_text(f"{one.host.name} ({one.host.label})")))
        for finding in findings:
            say(f"  {_MARKS[finding.severity]} {finding.topic:<8} {safe_text(finding.text)}")
            if finding.hint:
                say(f"    {'':<8} {safe_text(finding.hint)}")
