"""``bequeath systemd-unit``: a unit that leads an experiment and restarts its head."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from dispatcher.cli.arguments import Experiment, Folder, Json
from dispatcher.terminal.console import note, pass_on, print_json


def systemd_unit(
    experiment: Experiment = None, folder: Folder = None, as_json: Json = False
) -> None:
    """Print a systemd user unit that runs `bequeath resume` for an experiment.

    It starts the head again when it was killed, lost its disk for a while, or the machine was
    started anew; not when the experiment is over, was stopped, failed, or is led by another
    head. Trials go on while the head is away. docs/service.md says how to install it.
    """
    from dispatcher.cli.unit_text import UnitValues, unit_text
    from dispatcher.experiments.handle import ExperimentHandle, Purpose

    handle = ExperimentHandle.find(experiment, folder, Purpose.USE)
    config = handle.config()
    values = UnitValues(
        handle.folder.resolve(),
        handle.name,
        sys.executable,
        stop_grace_s=config.trial_stop_grace,
        head_grace_s=config.head_grace,
        environment={**os.environ, "PYTHONPATH": _python_path()},
    )
    text = unit_text(values)
    if as_json:
        print_json({"name": values.file_name, "unit": text})
        return
    pass_on(text.rstrip("\n") + "\n")
    note(f"save it as ~/.config/systemd/user/{values.file_name}, then:")
    note(f"systemctl --user daemon-reload && systemctl --user enable --now {values.file_name}")


def _python_path() -> str:
    """Return the unit's ``PYTHONPATH``, with this package's folder if that is not installed."""
    ours = Path(__file__).resolve().parents[2]
    before = os.environ.get("PYTHONPATH", "")
    if "site-packages" in ours.parts:
        return before
    return os.pathsep.join(filter(None, (str(ours), before)))
