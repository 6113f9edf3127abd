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


def _take_places() -> None:
    """Find our other packages where a user's ``tuners.py`` beside a script comes before them."""
    import os
    import sys
    from importlib.machinery import PathFinder

    root = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    for name in ("trial_runtime", "tuners"):
        there = sys.modules.get(name)
        spec = PathFinder.find_spec(name) if there is None else there.__spec__
        folders = spec.submodule_search_locations if spec is not None else None
        place = os.path.realpath(os.path.join(root, name))
        if spec is not None and all(os.path.realpath(each) != place for each in folders or ()):
            _namesakes(root).take_place(name, root)


def _namesakes(root: str) -> Any:
    """Return :mod:`trial_runtime.namesakes`, by its file: its package may be hidden itself."""
    import os
    import sys
    from importlib.util import module_from_spec, spec_from_file_location

    name = "trial_runtime.namesakes"
    if name not in sys.modules:
        spec = spec_from_file_location(name, os.path.join(root, "trial_runtime", "namesakes.py"))
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = module = module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[name]


_take_places()


def __getattr__(name: str) -> Any:
    if name != "Experiment":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from dispatcher.api import Experiment

    return Experiment


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
