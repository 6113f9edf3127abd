"""The experiment file: what it may say, and where exactly it is wrong.

This room turns YAML (or a mapping from Python) into a frozen
:class:`~dispatcher.experiment.config.ExperimentConfig`, or into errors that name
``file:line:column``, the key, the nearest valid key and the mend. It never starts
anything, never imports the author's code, and writes nothing but a copy of that (`code_folder`).

Read ``all_keys.py`` first (every key there is), then ``loader.py`` (the order of checks).
"""

from __future__ import annotations

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
