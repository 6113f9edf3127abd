"""Steps are carried out all or none: a step that fails takes back those before it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

from nfs_setup.errors import MachineRefuses, RollbackFailed, SetupError
from nfs_setup.host import Host
from nfs_setup.ledger import Entry, Ledger, Run
from nfs_setup.report import Line, Report
from nfs_setup.step import Step, Undo
from nfs_setup.step_commands import undo_command
from nfs_setup.step_file import undo_file
from nfs_setup.step_folder import undo_folder
from nfs_setup.step_mount import undo_mount
from nfs_setup.step_packages import undo_packages
from nfs_setup.step_service import undo_service

#: Gets each step as it is done.
Watcher = Callable[[Line], None]

#: By the kind of the step that is taken back.
_BY_KIND: dict[str, Undo] = {
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
            roll_back(host, ledger, run, error)
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
        for _ in taken_back(host, ledger, run):
            pass
        report.note(f"an earlier '{run.verb}' of {run.target} had died; it was taken back first")


def taken_back(
    host: Host, ledger: Ledger, run: Run, *, keep_packages: bool = False
) -> Iterator[tuple[Entry, str]]:
    """Undo the entries of a run, the newest first, and strike each off the ledger.

    Args:
        host: the machine.
        ledger: has the run, which is gone from it at the end.
        run: what is undone.
        keep_packages: whether packages stay installed.

    Yields:
        An entry that was undone, and why something of it was kept on purpose, if anything was.

    Raises:
        SetupError: if one cannot be undone; it and those before it are in the ledger still.
    """
    for entry in list(reversed(run.entries)):
        if entry.step == "packages" and keep_packages:
            entry.data["keep"] = True
        kept = _take_back(host, ledger, entry)
        run.entries.remove(entry)
        ledger.save()
        yield entry, kept
    ledger.runs.remove(run)
    ledger.save()


def _take_back(host: Host, ledger: Ledger, entry: Entry) -> str:
    with _named(entry.title):
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


def roll_back(host: Host, ledger: Ledger, run: Run, cause: BaseException) -> None:
    """Take back what a run has done before it failed.

    Args:
        host: where it ran.
        ledger: of that machine; saved.
        run: goes from the ledger, unless something of it cannot be taken back.
        cause: why it failed.

    Raises:
        RollbackFailed: something of it cannot be taken back.
    """
    left = []
    for entry in list(reversed(run.entries)):
        try:
            _take_back(host, ledger, entry)
        except SetupError as error:
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
