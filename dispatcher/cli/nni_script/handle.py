"""A script's experiment on disk: starting, awaiting, stopping and changing it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from dispatcher.background import start_in_background
from dispatcher.cli.nni_script.children import withheld_from_children
from dispatcher.cli.scene import Observer
from dispatcher.cli.watching import Watching
from dispatcher.control.client import HeadClient
from dispatcher.creating import create
from dispatcher.experiment import ExperimentConfig
from dispatcher.finding import known_folders
from dispatcher.finding.find import find_folder
from dispatcher.queries.status import is_led

#: Between two looks at whether it is over (seconds).
LOOK_S = 0.1


class ExperimentHandle:
    """One experiment, by its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def on_new(cls, config: ExperimentConfig, ident: str) -> ExperimentHandle:
        """Lay a new one down."""
        folder = create(known_folders.housed(config), ident)
        known_folders.remember(folder.parent)
        return cls(folder)

    @classmethod
    def on(cls, ident: str) -> ExperimentHandle:
        """One that is kept. Raises ``ExperimentNotFound``."""
        return cls(find_folder(ident, None))

    @property
    def running(self) -> bool:
        """Whether a head leads it now."""
        return is_led(self.folder)

    def start(self) -> None:
        """Have it led in the background, from where it stands; blocks until its head answers."""
        if not self.running:
            with withheld_from_children():
                start_in_background(self.folder)

    def wait(self) -> None:
        """Show its progress until it is over; an interrupt stops it."""
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
        """Stop it and wait for that."""
        self.ask("stop", kind="now", reason="stopped by its script")
        self._await_end()

    def ask(self, verb: str, **arguments: Any) -> None:
        """Ask its head for something. Raises ``PassingBackendError`` if none leads it."""
        with HeadClient(self.folder) as client:
            client.ask(verb, **arguments)

    def _await_end(self) -> None:
        while self.running:
            time.sleep(LOOK_S)
