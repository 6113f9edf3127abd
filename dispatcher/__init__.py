"""bequeath: neural architecture search in which children inherit their parents' weights.

``Experiment`` is the notebook's way in (:mod:`dispatcher.api`), the command ``bequeath`` the
terminal's (:mod:`dispatcher.cli`). Importing this package loads neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dispatcher.api import Experiment

__version__ = "0.1.0"

__all__ = ["Experiment", "__version__"]


#: Our other packages, by a module that only ours have.
_BESIDE = {"tuners": "builtin", "trial_runtime": "session_file"}


def _refuse_namesakes() -> None:
    """Refuse a user's own ``tuners.py`` beside a script: it comes before our package of that name,
    and the error would be an import deep in ours. Reported here, with its place."""
    import importlib.util
    import os

    for name, own in _BESIDE.items():
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError):
            continue
        folders = list(spec.submodule_search_locations or ()) if spec is not None else []
        if spec is None or any(os.path.isfile(f"{each}/{own}.py") for each in folders):
            continue
        raise ImportError(
            f"{spec.origin or folders[0]} takes the place of bequeath's own package {name!r}: "
            "rename it, or take all names from bequeath: import bequeath as bq"
        )


_refuse_namesakes()


def __getattr__(name: str) -> Any:
    if name != "Experiment":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from dispatcher.api import Experiment

    return Experiment


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
