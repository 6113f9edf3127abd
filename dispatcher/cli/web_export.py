"""``bequeath web --export``: a run as one HTML file."""

from __future__ import annotations

from pathlib import Path

from dispatcher.cli.arguments import find_handle
from dispatcher.errors import BackendError, UserError
from dispatcher.terminal import formatting
from dispatcher.terminal.console import note, print_json, say


def write_run(
    experiment: str,
    out: Path | None,
    folder: Path | None,
    *,
    most: float,
    logs: bool,
    as_json: bool,
) -> None:
    """Write a run, and say what was left out.

    Args:
        experiment: its id, the beginning of one, name or folder.
        out: the file; None: by its id, in this folder.
        folder: look for experiments in this folder only.
        most: MiB of the file.
        logs: whether ends of logs go in.
        as_json: say it as JSON.

    Raises:
        DispatcherError: there is no such run, it does not fit, or the file cannot be written.
    """
    from dispatcher.folders.ownership import is_ours
    from dispatcher.web.saved.contents import StoredRun
    from dispatcher.web.saved.saving import save_run
    from dispatcher.web.settings import STATIC
    from dispatcher.wiring.masks import unknown_secrets
    from trial_runtime import durable_file

    handle = find_handle(experiment, folder)
    path = Path(f"{handle.id}.html") if out is None else out
    if path.exists() and not path.is_file():
        raise UserError("is no file, and is not replaced by one", where=str(path))
    unmasked = unknown_secrets(handle.config(), ours=is_ours(handle.folder))
    saved = save_run(StoredRun(handle), STATIC, most_bytes=int(most * (1 << 20)), logs=logs)
    try:
        durable_file.replace(path.absolute(), saved.document, mode=None)
    except OSError as error:
        raise BackendError(f"cannot be written: {error.strerror}", where=str(path)) from error
    if as_json:
        print_json(
            {
                "experiment": handle.id,
                "file": str(path),
                "bytes": len(saved.document),
                "trials": saved.trials,
                "detailed": saved.detailed,
                "logs": saved.logs,
                "left_out": saved.left_out,
                "unmasked": unmasked,
            }
        )
        return
    say(str(path))
    note(f"{formatting.size(len(saved.document))}, {saved.trials:,} trials; left out:")
    for sentence in saved.left_out:
        note(f"- {sentence}")
    for reference in unmasked:
        note(
            f"{reference} is not known here: where a trial has printed what it stands for, that is "
            "in the file"
        )
