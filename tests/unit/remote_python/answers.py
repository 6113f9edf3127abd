"""Answers of machines to the probe."""

from __future__ import annotations

from typing import Any

import msgspec

from dispatcher.remote_python.probed import Probed, PythonFacts
from dispatcher.wheelhouse import MODULES

#: One on which trials can run, and which needs nothing.
FIT = Probed(
    version=(3, 11, 2),
    executable="/usr/bin/python3",
    folder="/home/dev/.bequeath",
    folder_trouble="",
    missing=dict.fromkeys(MODULES, ""),
    code=[],
    runtime=[],
    python=PythonFacts("cpython", "cpython-311", "x86_64", "glibc", (2, 36)),
    versions=dict.fromkeys(MODULES, "90.0"),
    cores=8,
    free=1 << 40,
)


def fit_machine(**changed: Any) -> Probed:
    """Such an answer, but for what is given."""
    return msgspec.structs.replace(FIT, **changed)
