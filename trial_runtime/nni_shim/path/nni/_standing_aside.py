"""Giving our place to a real NNI, if one is installed behind us."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys

#: The variable that a trial's agent sets when it reads the files of a real NNI.
FILES_ARE_READ = "BEQUEATH_NNI_FILES"


def stand_aside(name: str) -> bool:
    """Load the real ``nni`` in place of the module that is being imported, if there is one.

    Only for the top-level name, and only where its reports would be read: in a tuner host,
    which looks here last, and in a trial whose agent reads NNI's files.
    """
    if name != "nni" or ("BEQUEATH_SESSION" in os.environ and FILES_ARE_READ not in os.environ):
        return False
    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    others = [entry for entry in sys.path if os.path.abspath(entry or ".") != ours]
    spec = importlib.machinery.PathFinder.find_spec(name, others)
    if spec is None or spec.loader is None:
        return False
    module = importlib.util.module_from_spec(spec)
    us = sys.modules[name]
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules[name] = us
        raise
    if FILES_ARE_READ in os.environ:
        sys.stderr.write(f"[bequeath] this trial uses the nni that is installed, {spec.origin}\n")
    return True
