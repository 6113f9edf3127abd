"""A script's experiment on disk: starting, awaiting, stopping and changing it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from dispatcher.control.client import HeadClient
from dispatcher.experiment import ExperimentConfig
from dispatcher.experiments import known_folders
from dispatcher.experiments.creating import create
from dispatcher.experiments.find import find_folder
from dispatcher.experiments.processes import start_in_background
from dispatcher.folders.status import is_led
from dispatcher.live_view.scene import Observer
from dispatcher.live_view.watching import Watching
from dispatcher.nni.script.children import withheld_from_children

#: Seconds between two checks whether an experiment is over.
LOOK_S = 0.1


class ScriptHandle:
    """A handle on one experiment, by its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def on_new(cls, config: ExperimentConfig, ident: str) -> ScriptHandle:
        """Make the folder of a new experiment."""
        folder = create(known_folders.with_default_folder(config), ident)
        known_folders.remember(folder.parent)
        return cls(folder)

    @classmethod
    def on(cls, ident: str) -> ScriptHandle:
        """Return the handle on an existing experiment. Raises ``ExperimentNotFound``."""
        return cls(find_folder(ident, None))

    @property
    def running(self) -> bool:
        """Whether a head leads it now."""
        return is_led(self.folder)

    def start(self) -> None:
        """Start a head in the background, to begin or to go on; blocks until it answers."""
        if not self.running:
            with withheld_from_children():
                start_in_background(self.folder)

    def wait(self) -> None:
        """Show the progress until the experiment is over; an interrupt stops it."""
        watching = Watching(Observer(self.folder, self.folder.name))
        watching.start()
        try:
            self._await_end()
        except KeyboardInterrupt:
            self.stop()
            raise
        finally:
            watching.close()

    def stop(self) -> None:
        """Stop the experiment and wait until it has stopped."""
        self.ask("stop", kind="now", reason="stopped by its script")
        self._await_end()

    def ask(self, verb: str, **arguments: Any) -> None:
        """Send a request to the head. Raises ``PassingBackendError`` if no head leads."""
        with HeadClient(self.folder) as client:
            client.ask(verb, **arguments)

    def _await_end(self) -> None:
        while self.running:
            time.sleep(LOOK_S)
