"""Take back what was set up, the newest first, until the machine is as it was."""

from __future__ import annotations

import re

from nfs_setup.errors import MachineRefuses, RequestRefused
from nfs_setup.host import Host
from nfs_setup.ledger import Ledger, Run
from nfs_setup.report import Line, Report
from nfs_setup.request import UndoRequest
from nfs_setup.step_mount import refuse_used
from nfs_setup.transaction import Watcher, clean_up, require_root, taken_back


def undo(
    host: Host, request: UndoRequest, report: Report, watch: Watcher = lambda line: None
) -> None:
    """Take back the runs for a target, or all. Blocks until done.

    What several runs count on (packages, the service) goes with the last of them. If a step
    cannot be undone, those before it stay undone and the ledger keeps the rest: mend what is
    named and run it again.

    Args:
        host: the machine.
        request: the target, or none for all, and what may be in use or stay.
        report: gets a line for each step.
        watch: gets each line at once.

    Raises:
        RequestRefused: if nothing of that name was set up here.
        MachineRefuses: while processes use a mount, or clients a server.
    """
    ledger = Ledger(host)
    chosen = [run for run in ledger.runs if request.target in ("", run.target)]
    if not chosen:
        if request.target and not request.missing_is_fine:
            targets = sorted({run.target for run in ledger.runs})
            hint = f"there is: {', '.join(targets)}" if targets else "nothing was, so far"
            raise RequestRefused("was not set up here", where=request.target, hint=hint)
        return
    if request.dry_run:
        for run in reversed(chosen):
            for entry in reversed(run.entries):
                report.steps.append(Line("planned", f"undo: {entry.title}"))
                watch(report.steps[-1])
        return
    require_root(host, "undo")
    with host.exclusive():
        ledger = Ledger(host)
        chosen = [run for run in ledger.runs if request.target in ("", run.target)]
        _refuse_used(host, chosen, request)
        clean_up(host, ledger, report)
        for run in reversed([run for run in chosen if run in ledger.runs]):
            _pass_on(ledger, run, chosen)
            for entry, kept in taken_back(host, ledger, run, keep_packages=request.keep_packages):
                state, detail = ("kept", f"{kept}\n") if kept else ("undone", "")
                report.steps.append(Line(state, entry.title, detail))
                watch(report.steps[-1])


def _pass_on(ledger: Ledger, run: Run, chosen: list[Run]) -> None:
    """Give the steps that other runs count on to one of these."""
    heirs = [r for r in ledger.runs if r.verb == run.verb and r not in chosen]
    if not heirs:
        return
    shared = [entry for entry in run.entries if entry.shared]
    heirs[0].entries[:0] = shared
    run.entries = [entry for entry in run.entries if not entry.shared]
    ledger.save()


def _refuse_used(host: Host, chosen: list[Run], request: UndoRequest) -> None:
    """Refuse what is in use, before anything is changed."""
    for run in chosen:
        if run.verb == "client":
            refuse_used(host, run.target)
    if request.while_clients_use_it or all(run.verb != "server" for run in chosen):
        return
    clients = clients_of(host)
    if clients:
        raise MachineRefuses(
            f"clients use this server: {', '.join(clients)}",
            hint="undo them first; or add --while-clients-use-it, and their programs get errors",
        )


def clients_of(host: Host) -> list[str]:
    """Return the clients of this machine's NFSv4 server, by name and address (Linux 5.3)."""
    found = []
    folder = "/proc/fs/nfsd/clients"
    for number in host.names(folder):
        try:
            text = (host.read(f"{folder}/{number}/info") or b"").decode("utf-8", "replace")
        except OSError:
            continue
        address = re.search(r'^address: "(.*)"$', text, re.M)
        name = re.search(r'^name: "(.*)"$', text, re.M)
        words = [match[1] for match in (name, address) if match]
        found.append(" at ".join(words) or f"client {number}")
    return found
