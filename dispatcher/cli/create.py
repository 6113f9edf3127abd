"""``bequeath create``: start an experiment that needs no terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dispatcher.cli.arguments import ExperimentFile, Json
from dispatcher.cli.run import Changes, Name, configured
from dispatcher.terminal.console import note, print_json, say

if TYPE_CHECKING:
    from dispatcher.experiment import ExperimentConfig


def create(
    file: ExperimentFile, changes: Changes = None, name: Name = None, as_json: Json = False
) -> None:
    """Start an experiment in the background and print its id.

    It goes on when the terminal is closed. Watch it with `bequeath top`, end it with
    `bequeath stop`.
    """
    begin_in_background(configured(file, changes or [], name), as_json=as_json)


def begin_in_background(config: ExperimentConfig, *, as_json: bool = False) -> None:
    """Make an experiment's folder, start a head for it in the background, and print its id."""
    from dispatcher.experiments.handle import ExperimentHandle

    handle = ExperimentHandle.create(config)
    pid = handle.start()
    if as_json:
        print_json({"experiment": handle.id, "folder": str(handle.folder), "pid": pid})
        return
    say(handle.id)
    note(f"runs in {handle.folder}; watch it with: bequeath top {handle.id}")
