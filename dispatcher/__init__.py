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


def __getattr__(name: str) -> Any:
    if name != "Experiment":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from dispatcher.api import Experiment

    return Experiment


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
