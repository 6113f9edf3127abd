"""The environment of a script's child processes: ``nni``, and ``nni.experiment`` being ours."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from trial_runtime import nni_shim


def provide_to_children() -> None:
    """Make both available to Python scripts that this process starts."""
    known = (os.environ.get("PYTHONPATH"), nni_shim.folder())
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, known))
    os.environ[nni_shim.PROVIDER] = f"{__package__}.modules"


@contextmanager
def withheld_from_children() -> Iterator[None]:
    """Hide both from processes that are started in the context: heads provide them themselves."""
    names = ("PYTHONPATH", nni_shim.PROVIDER)
    before = {name: os.environ[name] for name in names if name in os.environ}
    paths = before.get("PYTHONPATH", "").split(os.pathsep)
    os.environ.pop(nni_shim.PROVIDER, None)
    if "PYTHONPATH" in before:
        kept = [path for path in paths if path != nni_shim.folder()]
        os.environ["PYTHONPATH"] = os.pathsep.join(kept)
    try:
        yield
    finally:
        os.environ.update(before)
