"""``bequeath sink`` and ``bequeath tensorboard``: experiments in trackers, old ones too."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from dispatcher.cli.arguments import Experiment, Json, find_handle
from dispatcher.terminal.console import is_terminal, note, print_json, say


def sink(
    experiment: Experiment = None,
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind",
            metavar="KIND",
            help="Kind of tracker. Default: the sinks of the experiment's file.",
        ),
    ] = None,
    folder: Annotated[
        str | None,
        typer.Option("--folder", metavar="DIR", help="The sink's `folder`, from here."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="A key of the sink as in a file; may be repeated."
        ),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the experiment is over.")
    ] = False,
    served: Annotated[
        bool, typer.Option("--serve", hidden=True, help="Feed beside a head.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Put an experiment into a tracker, whether or not it runs: what it has not taken yet.

    What was sent before is not sent again, so this can be repeated.
    """
    if served:
        _serve(experiment)
    from dispatcher.experiments.sinks import assignments, feed, sinks_of

    handle = find_handle(experiment)
    values: dict[str, Any] = assignments(settings or [])
    if kind is not None:
        values["kind"] = kind
    if folder is not None:
        values["folder"] = str(Path(folder).expanduser().absolute())
    answers = []
    for section in sinks_of(handle, values):
        done = feed(handle, section, _show(section.title), follow=follow, tell=not values)
        answers.append({"experiment": handle.id, **done._asdict()})
        if not as_json:
            say(f"{done.sink}: {done.taken} trials are in {done.target}")
    if as_json:
        print_json(answers[0] if len(answers) == 1 else answers)


def _serve(folder: str | None) -> None:
    """Feed the sinks of an experiment beside its head, and exit."""
    from dispatcher.sinks.serving import serve

    if folder is None:
        raise typer.BadParameter("--serve needs the experiment's folder")
    raise typer.Exit(serve(Path(folder)))


def _show(name: str) -> Any:
    """Make a function that says how far a sink is, where somebody watches."""
    last = [0]

    def show(progress: Any) -> None:
        if is_terminal() and progress.behind and progress.taken - last[0] >= 1000:
            last[0] = progress.taken
            note(f"{name}: {progress.taken} trials, {progress.behind} to come")

    return show


def tensorboard(
    experiments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="EXPERIMENT…", help="Ids, names or folders; the newest.", show_default=False
        ),
    ] = None,
    port: Annotated[
        int, typer.Option("--port", metavar="PORT", min=0, max=65535, help="0 takes a free one.")
    ] = 6006,
    as_json: Json = False,
) -> None:
    """Show experiments in TensorBoard on this machine, until Ctrl-C.

    Their files are written to a temporary folder. Where TensorBoard is not installed they stay
    there, and what to type is printed. With `sinks:` in the file it follows a running search.
    """
    from dispatcher.experiments.sinks import tensorboard_command, write_for_tensorboard

    handles = [find_handle(each) for each in (*(experiments or ()),) or (None,)]
    folder = Path(tempfile.mkdtemp(prefix="bequeath-tensorboard-"))
    write_for_tensorboard(handles, folder)
    command = tensorboard_command(folder, port)
    if as_json:
        names = [each.id for each in handles]
        print_json({"folder": str(folder), "experiments": names, "command": command})
        return
    say(f"files for TensorBoard are in {folder}")
    if not command:
        note("TensorBoard is not installed: 'pip install tensorboard', or copy the folder; then")
        note(f"  tensorboard --host 127.0.0.1 --logdir {folder}")
        return
    try:
        raise typer.Exit(subprocess.run(command, check=False).returncode)
    except KeyboardInterrupt:
        return  # Ctrl-C is the way to leave a view
    finally:
        shutil.rmtree(folder, ignore_errors=True)
