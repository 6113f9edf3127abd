"""A module that each Python of a trial imports as it starts, where modules were copied here.

A program may import numpy before it imports ``trial_runtime``: it finds the copied modules all the
same, see :mod:`trial_runtime.carried`. This folder is on PYTHONPATH, so another ``sitecustomize``
that this Python has is hidden by this one, and run by it.
"""

import os
import sys


def _run_the_hidden_one() -> None:
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    here = os.path.dirname(os.path.abspath(__file__))
    others = [path for path in sys.path if os.path.abspath(path) != here]
    spec = PathFinder.find_spec(__name__, others)
    if spec is not None and spec.loader is not None:
        hidden = module_from_spec(spec)
        sys.modules[__name__] = hidden  # whoever imports it gets that one
        spec.loader.exec_module(hidden)


# A trial may call any Python; for an older one nothing was copied.
if sys.version_info >= (3, 9):  # noqa: UP036
    from trial_runtime import carried  # noqa: F401 - its import puts them on the path

    _run_the_hidden_one()
