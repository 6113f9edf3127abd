"""Steps are carried out all or none: a step that fails takes back those before it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from nfs_setup.errors import MachineRefuses, RollbackFailed, SetupError
from nfs_setup.host import Host
from nfs_setup.ledger import Entry, Ledger, Run
from nfs_setup.report import Line, Report
from nfs_setup.step import Step
from nfs_setup.step_commands import undo_command
from nfs_setup.step_file import undo_file
from nfs_setup.step_folder import undo_folder
from nfs_setup.step_mount import undo_mount
from nfs_setup.step_packages import undo_packages
from nfs_setup.step_service import undo_service

#: Gets each step as it is done.
Watcher = Callable[[Line], None]

#: The function that takes back each kind of step. It tolerates a step that was half done.
_BY_KIND: dict[str, Callable[[Host, Ledger, dict[str, Any]], str]] = {
    "command": undo_command,
    "file": undo_file,
    "folder": undo_folder,
    "mount": undo_mount,
    "packages": undo_packages,
    "service": undo_service,
}


def carry_out(
    host: Host, report: Report, steps: Sequence[Step], watch: Watcher = lambda line: None
) -> None:
    """Make the changes that are missing, one step after the other, and note them in the ledger.

    With ``report.dry_run`` nothing is changed and nothing needs to be root. Blocks until done.

    Args:
        host: the machine that is changed.
        report: gets a line for each step.
        steps: in the order in which they are made.
        watch: gets each line at once.

    Raises:
        SetupError: of the step that failed, after what this run had changed was taken back.
        RollbackFailed: if that was not possible in full; the ledger keeps what is left.
    """

    def record(line: Line) -> None:
        report.steps.append(line)
        watch(line)

    if report.dry_run:
        for step in steps:
            record(_planned(host, step))
        return
    require_root(host, report.verb)
    with host.exclusive():
        ledger = Ledger(host)
        clean_up(host, ledger, report)
        run = ledger.begin(report.verb, report.target)
        try:
            for step in steps:
                record(_carried_out(host, ledger, run, step))
        except BaseException as error:  # Ctrl-C as well: nothing is left half done
            _roll_back(host, ledger, run, error)
            raise
        run.complete = True
        ledger.save()


def require_root(host: Host, verb: str) -> None:
    """Refuse at once what would fail in the middle.

    Raises:
        MachineRefuses: if this is not root.
    """
    if not host.is_root():
        raise MachineRefuses(
            f"'bequeath nfs {verb}' changes the system and needs root",
            hint="run it with sudo; --dry-run shows what it would do, without",
        )


def clean_up(host: Host, ledger: Ledger, report: Report) -> None:
    """Take back what a run left that died on its way (killed, power cut).

    Args:
        host: the machine.
        ledger: the runs; those that died are removed from it.
        report: gets a note on each of them.

    Raises:
        SetupError: if that fails.
    """
    for run in ledger.interrupted():
        for entry in list(reversed(run.entries)):
            take_back(host, ledger, entry)
            run.entries.remove(entry)
            ledger.save()
        ledger.runs.remove(run)
        report.note(f"an earlier '{run.verb}' of {run.target} had died; it was taken back first")


def take_back(host: Host, ledger: Ledger, entry: Entry) -> str:
    """Undo one entry; it stays in the ledger until the caller removes it.

    Args:
        host: the machine.
        ledger: keeps contents that were replaced.
        entry: the step, with what was noted before it was made.

    Returns:
        Why something of it was kept on purpose; an empty text if nothing was.

    Raises:
        SetupError: if it cannot be undone.
        OSError: if the system refuses.
    """
    return _BY_KIND[entry.step](host, ledger, entry.data)


def _planned(host: Host, step: Step) -> Line:
    change = step.change(host)
    if change is None:
        return Line("already", step.title)
    return Line("planned", change.text, change.detail)


def _carried_out(host: Host, ledger: Ledger, run: Run, step: Step) -> Line:
    with _named(step.title):
        change = step.change(host)
        if change is None:
            return Line("already", step.title)
        entry = Entry(step.kind, step.title, step.before(host, ledger), step.shared)
        run.entries.append(entry)
        ledger.save()
        step.apply(host)
        step.after(host, entry.data)
        entry.done = True
        ledger.save()
    return Line("done", change.text, change.detail)


@contextlib.contextmanager
def _named(title: str) -> Iterator[None]:
    """Turn what the system refuses into an error of ours that has a place."""
    try:
        yield
    except OSError as error:
        text = error.strerror or str(error)
        raise MachineRefuses(text, where=error.filename or title) from error


def _roll_back(host: Host, ledger: Ledger, run: Run, cause: BaseException) -> None:
    left = []
    for entry in list(reversed(run.entries)):
        try:
            take_back(host, ledger, entry)
        except (SetupError, OSError) as error:
            left.append(f"{entry.title}: {error}")
            continue
        run.entries.remove(entry)
    if not left:
        ledger.runs.remove(run)
    ledger.save()
    if left:
        raise RollbackFailed(
            f"{cause}\nand what was done before could not all be taken back: {'; '.join(left)}",
            hint="mend that, then run 'bequeath nfs undo'",
        ) from cause
