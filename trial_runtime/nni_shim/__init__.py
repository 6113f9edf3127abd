"""A module ``nni`` for code that was written for NNI, and the one place that makes it visible.

The folder of this package is put on the module path of trials and tuners of experiments with
``compatibility: nni``, and on no other. It never hides a real installation: tuner hosts look here
last, and in trials :mod:`nni` gives its place to a real one, see its ``__init__``.
Inside ``nni`` imports are relative, so that the same files are ``nni`` there and
``trial_runtime.nni_shim.path.nni`` to tests and checkers.
"""

from __future__ import annotations

import os

#: Names the module that makes ``nni.experiment``, in scripts that start experiments: its
#: ``install`` puts it among the imported ones. Not in trials and tuners.
PROVIDER = "BEQUEATH_NNI_EXPERIMENT"


def folder() -> str:
    """The folder to put on a module path."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "path")
