"""The experiment file: what it may say, and where exactly it is wrong.

This room turns YAML (or a mapping from Python) into a frozen
:class:`~dispatcher.experiment.config.ExperimentConfig`, or into errors that name
``file:line:column``, the key, the nearest valid key and the mend. It never starts
anything, never imports the author's code, and writes nothing but a copy of that (`code_folder`).

Read ``all_keys.py`` first (every key there is), then ``loader.py`` (the order of checks).

Importing this package alone loads nothing: a process that feeds a sink needs one section of the
file, and the whole file costs half a second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dispatcher.late_names import fetched_late

if TYPE_CHECKING:
    from dispatcher.experiment.config import ExperimentConfig
    from dispatcher.experiment.loader import (
        build_experiment,
        load_experiment,
        load_search_space,
        parse_experiment,
    )
    from dispatcher.experiment.problems import ExperimentFileErrors

__all__ = [
    "ExperimentConfig",
    "ExperimentFileErrors",
    "build_experiment",
    "load_experiment",
    "load_search_space",
    "parse_experiment",
]

_HOMES = {
    "ExperimentConfig": "config",
    "ExperimentFileErrors": "problems",
    "build_experiment": "loader",
    "load_experiment": "loader",
    "load_search_space": "loader",
    "parse_experiment": "loader",
}

__getattr__ = fetched_late(__name__, _HOMES)
