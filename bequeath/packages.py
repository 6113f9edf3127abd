"""Loads the packages beside this one, whatever else bears their names.

A user's own module ``tuners`` or ``dispatcher`` beside a script hides nothing, see
:mod:`trial_runtime.namesakes`. A package that another distribution has overwritten is reported
with that distribution's name.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

from bequeath.names import HOMES, MODULES, NAMES

#: The folder in which our packages lie side by side; this one may be reached by a link.
ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))

#: What each package needs, itself last.
_NEEDS = {
    "trial_runtime": ("trial_runtime",),
    "tuners": ("trial_runtime", "tuners"),
    "dispatcher": ("trial_runtime", "tuners", "dispatcher"),
}
_REPAIR = "pip install --force-reinstall --no-deps bequeath"


def fetch(name: str) -> Any:
    """Return what ``bequeath`` calls so. Raises as :func:`make_ready` does."""
    make_ready(HOMES[name].partition(".")[0])
    module = import_module(HOMES[name])
    return module if name in MODULES else getattr(module, name)


def make_ready(package: str) -> None:
    """Let a package of ours be imported, with those that it needs.

    Raises:
        ImportError: another distribution has overwritten one of them; says which, and what to do.
            Or a user's package hides one, and has a module that is called like one of its modules.
    """
    for name in _NEEDS[package]:
        if not _is_ours(name):
            raise ImportError(_overwritten(name))
        _namesakes().take_place(name, ROOT)


def _is_ours(name: str) -> bool:
    """Whether a package is what it should be. One that is not there at all is no other one."""
    folder = os.path.join(ROOT, name)
    try:
        with open(os.path.join(folder, "__init__.py"), encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError):
        return not os.path.isdir(folder)
    return all(each in text for each in NAMES[name])


def _namesakes() -> Any:
    """Return the module that knows of them, by its file: its package may be hidden itself."""
    name = "trial_runtime.namesakes"
    if name not in sys.modules:
        from importlib.util import module_from_spec, spec_from_file_location

        file = os.path.join(ROOT, "trial_runtime", "namesakes.py")
        spec = spec_from_file_location(name, file)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = module = module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[name]


def _overwritten(name: str) -> str:
    owner = _other_owner(name)
    by = f"the distribution {owner!r}" if owner else "another package"
    first = f"run: pip uninstall {owner.partition(' ')[0]}; then: " if owner else "run: "
    place = os.path.join(ROOT, name)
    return f"{place} is bequeath's, and {by} has overwritten it; {first}{_REPAIR}"


def _other_owner(name: str) -> str:
    """Return name and version of another distribution that brought ``name``; empty without one."""
    from importlib.metadata import distributions

    for each in distributions(path=[ROOT]):
        title = each.metadata["Name"] or ""
        if title.lower() != "bequeath" and any(
            file.parts[0] in (name, f"{name}.py") for file in each.files or ()
        ):
            return f"{title} {each.version}"
    return ""
