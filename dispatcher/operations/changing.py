"""Operations that change one experiment: its processes, its limits, its store, its folder."""

from __future__ import annotations

from pathlib import Path

from dispatcher.errors import DispatcherError, UserError
from dispatcher.experiments.find import Purpose
from dispatcher.operations import answers
from dispatcher.operations import arguments as given
from dispatcher.operations.operation import Call, NoChoice


def resume(call: Call, wanted: NoChoice) -> answers.StartedHead:
    """Start a head in the background."""
    return _started(call, take_over=False)


def take_over(call: Call, wanted: NoChoice) -> answers.StartedHead:
    """Start a head in the place of one that may run."""
    return _started(call, take_over=True)


def _started(call: Call, *, take_over: bool) -> answers.StartedHead:
    handle = call.handle
    warning = handle.going_on_warning()
    if warning:
        call.context.note(warning)  # the head writes it to its log only
    return answers.StartedHead(handle.id, str(handle.folder), handle.start(take_over=take_over))


def stop(call: Call, wanted: given.StopExperiment) -> answers.Stopped:
    """Stop it, so that it can be resumed; of one that has lost its head, what it has left at
    schedulers is cancelled."""
    try:
        handle = call.handle
    except DispatcherError:
        done = None if call.name is None else _stopped_without_head(call)
        if done is None:
            raise
        return done
    reason = wanted.reason or f"stopped from {call.context.who}"
    handle.stop(now=not wanted.drain, reason=reason, grace_s=wanted.grace_s)
    if wanted.wait:
        if wanted.drain:
            call.context.note("waiting for running trials; Ctrl-C only ends this wait")
        handle.wait()
    return answers.Stopped(handle.id, "drain" if wanted.drain else "now", wanted.wait)


def _stopped_without_head(call: Call) -> answers.Stopped | None:
    """Cancel what a dead head has left at schedulers; None if there is nothing like that."""
    handle = call.context.handle(call.name, Purpose.CHANGE)
    if not handle.left_at_schedulers():
        return None
    swept = handle.sweep()
    if swept.names:
        return answers.Stopped(handle.id, "now", True, swept.names, swept.troubles)
    for trouble in swept.troubles:
        call.context.note(f"look yourself whether allocations are left: {trouble}")
    return None


def kill(call: Call, wanted: NoChoice) -> answers.Killed:
    """End all its processes at once."""
    handle = call.handle
    call.context.confirm(f"End all processes of {handle.id}?")
    ended = handle.kill()
    swept = handle.sweep()
    return answers.Killed(handle.id, ended, swept.names, swept.troubles)


def update(call: Call, wanted: given.UpdateExperiment) -> answers.Changed:
    """Change a limit or the search space."""
    done = call.handle.update(wanted.key, wanted.value)
    return answers.Changed(call.handle.id, wanted.key, done.running, done.warning, done.beyond)


def import_results(call: Call, wanted: given.ImportResults) -> answers.Imported:
    """Give the tuner results of another experiment."""
    from dispatcher.control.imported import results_text

    results_text(wanted.rows)  # checks all of them before the first is sent
    call.handle.import_results(wanted.rows)
    log = call.handle.place.head_log
    call.context.note(f"once the tuner has read them, {log} says if it cannot use some")
    return answers.Imported(call.handle.id, len(wanted.rows))


def fetch(call: Call, wanted: NoChoice) -> answers.FetchedFiles:
    """Fetch the files of trials on other machines."""
    workers = {}
    for worker, count, error in call.handle.fetch(call.context.note):
        message = None if error is None else error.message
        workers[worker] = answers.FetchedWorker(count, message)
        call.context.part((worker, workers[worker]))
    return answers.FetchedFiles(call.handle.id, workers)


def delete(call: Call, wanted: NoChoice) -> answers.Deleted:
    """Delete its folder with all that is in it."""
    handle = call.handle
    cancelled: list[str] = []
    troubles: list[str] = []

    def confirm() -> None:
        call.context.confirm(f"Delete {handle.folder} with everything in it?")
        swept = handle.sweep()  # while its file says where
        cancelled.extend(swept.names)
        troubles.extend(swept.troubles)

    handle.delete(confirm)
    return answers.Deleted(handle.id, str(handle.folder), tuple(cancelled), tuple(troubles))


def verify(call: Call, wanted: given.VerifyStore) -> answers.Verified:
    """Compare its tables with its journal."""
    result = call.handle.verify(rebuild=wanted.rebuild)
    return answers.Verified(
        experiment=call.handle.id,
        ok=result.ok,
        events=result.events,
        trials=result.trials,
        damage=list(result.damage),
        broken_at=result.broken_at,
        differences=[str(difference) for difference in result.differences],
        mended=result.mended,
    )


def compact(call: Call, wanted: NoChoice) -> answers.CompactedStore:
    """Fold what is past of its journal."""
    done, before, after = call.handle.compact()
    return answers.CompactedStore(call.handle.id, done, before, after)


def back_up(call: Call, wanted: given.BackUp) -> answers.BackupMade:
    """Copy it into another folder."""
    if not wanted.destination:
        raise UserError("an empty path is no folder", hint="name the folder of backups")
    done = call.handle.back_up(Path(wanted.destination), weights=wanted.weights)
    return answers.BackupMade(
        experiment=done.folder.name,
        folder=str(done.folder),
        weights=done.weights,
        linked=done.linked,
        gone=done.gone,
        unseen=done.unseen,
        links=done.links,
    )
