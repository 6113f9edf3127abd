"""``bequeath nfs cluster``: a server and all its clients, set up and taken back over SSH."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import typer

from dispatcher.cli.arguments import Json
from dispatcher.cli.exit_codes import ExitCode
from dispatcher.cli.nfs import arguments as options
from dispatcher.cli.nfs.progress import MachineProgress, print_outcomes
from dispatcher.errors import DispatcherError, PermanentBackendError, SeveralErrors, UserError
from dispatcher.safe_text import safe_text
from dispatcher.terminal.console import heading, note, print_json, say

if TYPE_CHECKING:
    from nfs_setup.cluster.members import Connect, Inventory
    from nfs_setup.cluster.plan import Outcome, Wave
    from nfs_setup.cluster.run_plan import RunPlan

#: Seconds to wait for busy hosts after Ctrl-C: enough for a step or two, not for a download.
_PATIENCE_S = 120.0


def cluster(
    inventory: options.InventoryFile,
    dry_run: options.ClusterDryRun = False,
    undo: options.ClusterUndo = False,
    status: options.ClusterStatus = False,
    verify: options.ClusterVerify = False,
    quick: options.ClusterQuick = False,
    keep_packages: options.ClusterKeepPackages = False,
    at_once: options.AtOnce = 10,
    as_json: Json = False,
) -> None:
    """Set up a share on a server and all its clients, over SSH.

    Logs in at every host first and changes nothing unless the server can be set up. Then the
    server, then the clients, several at once; one that fails does not stop the others, and
    is named at the end with what to do. Run it again after mending: what is set up already stays
    as it is. Hosts need Python 3.9 or later, and root or a sudo that asks for no password;
    nothing is left on them but the share. Their keys must be known (`bequeath hosts add HOST`).
    """
    if undo + status + verify > 1:
        raise typer.BadParameter("take one", param_hint="'--undo', '--status', '--verify'")
    if dry_run and (status or verify):
        raise typer.BadParameter("nothing is changed anyway", param_hint="'--dry-run'")
    if keep_packages and not undo:
        raise typer.BadParameter("goes with --undo", param_hint="'--keep-packages'")
    if quick and not verify:
        raise typer.BadParameter("goes with --verify", param_hint="'--quick'")
    from dispatcher.cli.nfs.inventory import read_inventory
    from dispatcher.cli.nfs.login import logins
    from nfs_setup.cluster import plan

    hosts = read_inventory(inventory)
    connect = logins(hosts, inventory.expanduser().absolute().parent)
    if verify:
        from dispatcher.cli.nfs.verify import verify_cluster

        verify_cluster(hosts, connect, quick=quick, as_json=as_json)
        return
    if status:
        waves = plan.status(hosts)
    elif undo:
        waves = plan.take_back(hosts, keep_packages=keep_packages, dry_run=dry_run)
    else:
        waves = plan.set_up(hosts, dry_run=dry_run)
    # The record of what was set up is readable for root only.
    needs_root = undo or status or not dry_run
    outcomes, interrupted = _carried_out(hosts, connect, waves, needs_root, at_once)
    _answer(outcomes, interrupted, as_json)


def _carried_out(
    hosts: Inventory, connect: Connect, waves: Sequence[Wave], needs_root: bool, at_once: int
) -> tuple[list[Outcome], bool]:
    """Return the outcomes, and whether Ctrl-C was pressed meanwhile."""
    from dispatcher.cli.nfs.login import setup_program
    from nfs_setup.cluster.run_plan import RunPlan

    progress = MachineProgress([(member.name, member.role) for member in hosts.members])
    run_plan = RunPlan(
        connect,
        setup_program(),
        needs_root=needs_root,
        at_once=at_once,
        patience_s=_PATIENCE_S,
        watch=progress.tell,
        on_waiting=lambda: note(
            "awaiting the hosts that are under way (Ctrl-C again: not any more)"
        ),
    )
    with _interruptible(run_plan), progress.shown():
        outcomes = run_plan.carry_out(waves)
    return outcomes, run_plan.interrupted


@contextlib.contextmanager
def _interruptible(run_plan: RunPlan) -> Iterator[None]:
    """Handle Ctrl-C: the first one begins no further host, the second one waits for none."""

    def interrupt(number: int, frame: Any) -> None:
        run_plan.interrupt()  # prints nothing: another line may be half printed

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _answer(outcomes: Sequence[Outcome], interrupted: bool, as_json: bool) -> None:
    failed = [one for one in outcomes if one.error is not None and one.state != "left out"]
    if as_json:
        well = all(one.state == "done" for one in outcomes)
        print_json({"ok": well, "interrupted": interrupted, "hosts": [o.plain() for o in outcomes]})
    else:
        _show(outcomes)
    if failed and not as_json:
        from dispatcher.cli.failure import report

        code = report(_together(failed))
    elif failed:
        code = ExitCode(_together(failed).exit_code)
    else:
        code = ExitCode.OK
    if interrupted:
        code = ExitCode.INTERRUPTED
    if code != ExitCode.OK:
        raise typer.Exit(code)


def _show(outcomes: Sequence[Outcome]) -> None:
    from dispatcher.cli.nfs.shown import show_remarks, show_status, show_step

    for outcome in outcomes:
        report = outcome.report
        if report is None or not (report.dry_run or report.verb == "status" or report.notes):
            continue
        say(heading(f"{safe_text(outcome.name)} ({outcome.order.member.role})"))
        if report.verb == "status":
            show_status(report.shown)
        elif report.dry_run:
            for line in report.steps:
                show_step(line)
        show_remarks(report)
    print_outcomes(outcomes)
    reports = [one.report for one in outcomes]
    if all(r is not None and r.verb != "status" and not r.changed for r in reports):
        undone = any(r is not None and r.verb == "undo" for r in reports)
        say(f"nothing to {'undo' if undone else 'change: everything is so already'}")
    elif any(r is not None and r.dry_run for r in reports):
        say("nothing was changed (--dry-run)")


def _together(failed: Sequence[Outcome]) -> DispatcherError:
    from nfs_setup.errors import RequestRefused

    def ours(outcome: Outcome) -> DispatcherError:
        error = outcome.error
        assert error is not None
        kind = UserError if isinstance(error, RequestRefused) else PermanentBackendError
        where = f"{outcome.name}: {error.where}" if error.where else outcome.name
        return kind(error.message, hint=error.hint, where=where)

    return SeveralErrors([ours(outcome) for outcome in failed])
