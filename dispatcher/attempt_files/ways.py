"""The way to the files of an attempt: files on this machine are read without asking any other."""

from __future__ import annotations

from dispatcher.attempt_files.attempt_at import AttemptAt, kept_here
from dispatcher.attempt_files.fetched import Fetched
from dispatcher.attempt_files.fetching import kind_of
from dispatcher.attempt_files.gathered import Gathered
from dispatcher.errors import DispatcherError
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.folders.ownership import demand_ours
from dispatcher.platforms.files import LocalFiles, Whereabouts
from dispatcher.ports import AttemptFiles


def is_fetched(folder: ExperimentFolder, attempt: AttemptAt, kind: str) -> bool:
    """Whether all files of a kind that an attempt has left on another machine are here.

    The other machine is not asked.

    Args:
        folder: the experiment's.
        attempt: the attempt.
        kind: one of :data:`~dispatcher.attempt_files.fetching.KINDS`.
    """
    record = Fetched.read(kept_here(folder, attempt), attempt.name)
    if any(kind_of(path) == kind for path in record.left):
        return False
    if kind in record.kinds:
        return True
    gathered = Gathered.read(folder.path, attempt.worker or "")
    return kind in gathered.kinds and gathered.has(attempt.trial, attempt.number)


def files_here(folder: ExperimentFolder, attempt: AttemptAt) -> LocalFiles:
    """Return the files in the experiment's folder, which need no other file to be read."""
    above = str(kept_here(folder, attempt))
    place = Whereabouts(
        folder.id,
        attempt.trial,
        attempt.number,
        above,
        work=f"{above}/work",
        checkpoints=f"{above}/checkpoints",
    )
    return LocalFiles(place)


def files_to_follow(folder: ExperimentFolder, attempt: AttemptAt) -> AttemptFiles:
    """Return the files of an attempt whose output is followed to its end, whatever becomes of the
    place where it runs. No machine is asked yet.

    Args:
        folder: the experiment's.
        attempt: the attempt.

    Raises:
        BackendError: as of :func:`files_of`.
    """
    from dispatcher.attempt_files.else_kept import FilesElseKept

    files = files_of(folder, attempt)
    if not goes_with_its_place(files):
        return files
    return FilesElseKept(files, files_here(folder, attempt), folder, attempt)


def goes_with_its_place(files: AttemptFiles) -> bool:
    """Whether only the agent sees these files, so that they go when its place does."""
    from dispatcher.attempt_files.by_head import FilesByHead

    return isinstance(files, FilesByHead)


def why_in_part(folder: ExperimentFolder, attempt: AttemptAt, path: str) -> str:
    """Return why a file that is here is not all of what an attempt has left; empty if it is.

    Args:
        folder: the experiment's.
        attempt: the attempt.
        path: of the file.
    """
    return Fetched.read(kept_here(folder, attempt), attempt.name).left.get(path, "")


def files_of(
    folder: ExperimentFolder, attempt: AttemptAt, *, for_shell: bool = False
) -> AttemptFiles:
    """Return the files of an attempt where it runs or ran. No machine is asked yet.

    Args:
        folder: the experiment's.
        attempt: the attempt.
        for_shell: whether a shell is wanted, too, which runs what the experiment's file says.

    Raises:
        BackendError: its worker is none that the experiment's file names any more, or one of a
            platform that shows no files.
        UserError: the experiment's file cannot be read.
        NotOurs: the experiment is somebody else's, and so is what would be run.
    """
    from dispatcher.attempt_files import places

    if for_shell:
        demand_ours(folder.path)
    try:
        return places.files_of(folder, attempt)
    except DispatcherError:
        if not attempt.is_here or for_shell:
            raise
    return files_here(folder, attempt)  # whatever became of the experiment's file
