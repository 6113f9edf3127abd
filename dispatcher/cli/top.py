"""``bequeath top``: the live view of an experiment that another process leads."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dispatcher.cli.arguments import Experiment, Folder, Json, context_for


def top(
    experiment: Experiment = None,
    once: Annotated[
        bool, typer.Option("--once", help="Show one picture and return; so does a pipe.")
    ] = False,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Watch an experiment: slots, running and waiting trials, the best, rate, time left.

    Ctrl-C ends the view, not the experiment. `--json` prints one snapshot. Where nothing runs the
    newest experiment is shown as `status` shows it.
    """
    watch(experiment, folder, once=once, as_json=as_json)


def watch(
    experiment: str | None,
    folder: Path | None,
    *,
    once: bool = False,
    as_json: bool = False,
    every_s: float | None = None,
) -> None:
    """Show an experiment until it or the user ends the view.

    Args:
        experiment: id, the beginning of one, a name or a folder; None: the one that runs.
        folder: the folder of experiments; None: the usual ones.
        once: show one picture and return.
        as_json: print one snapshot and return.
        every_s: seconds between two pictures; None: the usual time.
    """
    from dispatcher.experiments.find import Purpose
    from dispatcher.live_view.scene import Observer
    from dispatcher.live_view.watching import Watching
    from dispatcher.operations.answers import HeadNow
    from dispatcher.operations.operation import perform
    from dispatcher.operations.table import TOP
    from dispatcher.terminal.console import console, is_terminal, note, print_json

    named = experiment is not None
    context = context_for("top", folder)
    handle = context.handle(experiment, Purpose.RUNNING if named else Purpose.USE)
    if not (named or handle.running):
        # The newest, as for all commands that only read; no head answers with a picture.
        from dispatcher.cli.status import status

        note(f"no experiment is running; the newest is {handle.id}")
        if as_json:
            print_json(HeadNow(handle.id, None))
        else:
            status(str(handle.folder))
        return
    if as_json:
        print_json(perform(TOP, context, experiment=str(handle.folder)))
        return
    observer = Observer(handle.folder, handle.name)
    if once or not is_terminal():
        try:
            scene = observer.look()
        finally:
            observer.close()
        from dispatcher.live_view.picture import picture

        screen = console()
        screen.print(picture(scene, screen.width, max(screen.height, 40)))
        return
    try:
        Watching(observer, lambda scene: scene.snapshot is None, every_s=every_s).show()
    except KeyboardInterrupt:
        return  # Ctrl-C is the way to leave a view
    note(f"no head of {handle.id} answers any more; see: bequeath status {handle.id}")
