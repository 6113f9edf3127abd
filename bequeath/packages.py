"""Loads the packages beside this one, whatever else bears their names.

A user's ``tuners.py`` beside a script comes before ours on ``sys.path``. Ours is loaded by its
place then, and has the user's module behind it: names that only his has are found there. A name
that both define is refused, since one of the two programs would get the wrong one. A package
that another distribution has overwritten is reported with that distribution's name.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
import sys
from collections.abc import Collection
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

#: The folder in which our packages lie side by side; this one may be reached by a link.
ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))

#: What each package needs, itself last.
_NEEDS = {
    "trial_runtime": ("trial_runtime",),
    "tuners": ("trial_runtime", "tuners"),
    "dispatcher": ("trial_runtime", "tuners", "dispatcher"),
}
_DEFINITIONS = (ast.ClassDef, ast.FunctionDef)
_REPAIR = "pip install --force-reinstall --no-deps bequeath"


def load(module: str, names: Collection[str] = ()) -> ModuleType:
    """Import a module of ours.

    Args:
        module: its full name.
        names: what its package must have; another's package has not.

    Raises:
        ImportError: another distribution has overwritten the package, or a user's file of that
            name defines what ours does.
    """
    top = module.partition(".")[0]
    for each in _NEEDS[top]:
        _make_way(each)
    try:
        package = importlib.import_module(top)
        loaded = importlib.import_module(module)
    except ImportError as error:
        if owner := _other_owner(top):
            raise ImportError(_overwritten(top, owner)) from error
        raise
    if not {*names} <= {*getattr(package, "__all__", ())}:
        raise ImportError(_overwritten(top, _other_owner(top)))
    return loaded


def _make_way(name: str) -> None:
    """Let ``name`` be our package in this process, with a user's module of that name behind it."""
    place = os.path.join(ROOT, name)
    there = sys.modules.get(name)
    spec = PathFinder.find_spec(name) if there is None else there.__spec__
    folders = spec.submodule_search_locations if spec is not None else None
    if spec is None or any(os.path.realpath(each) == place for each in folders or ()):
        return
    own = os.path.join(place, "__init__.py")
    if not os.path.isfile(own):
        return  # a trial elsewhere, which has no tuners; or the import will fail by itself
    ours = importlib.util.spec_from_file_location(name, own, submodule_search_locations=[place])
    assert ours is not None
    assert ours.loader is not None
    package = importlib.util.module_from_spec(ours)
    sys.modules[name] = package
    try:
        ours.loader.exec_module(package)
        _refuse_doubles(name, spec, package)
        _put_behind(package, _Namesake(spec, there))
    except BaseException:
        sys.modules.pop(name)
        if there is not None:
            sys.modules[name] = there
        raise


class _Namesake:
    """A user's module that is called as one of our packages; runs when it is first needed."""

    def __init__(self, spec: ModuleSpec, module: ModuleType | None) -> None:
        self.spec = spec
        self.module = module

    def get(self) -> ModuleType:
        if self.module is None:
            self.module = importlib.util.module_from_spec(self.spec)
            if self.spec.loader is not None:
                self.spec.loader.exec_module(self.module)
        return self.module


def _put_behind(package: ModuleType, namesake: _Namesake) -> None:
    """Look for names that our package lacks in the user's module, and for its submodules."""
    ours = package.__dict__.get("__getattr__")

    def __getattr__(name: str) -> object:  # noqa: N807 - a module's own hook (PEP 562)
        if ours is not None:
            try:
                value: object = ours(name)
                return value
            except AttributeError:
                pass
        if name.startswith("__"):
            raise AttributeError(f"module {package.__name__!r} has no attribute {name!r}")
        found: object = getattr(namesake.get(), name)
        return found

    package.__path__.extend(namesake.spec.submodule_search_locations or ())
    package.__dict__["__getattr__"] = __getattr__
    # Who asks for the file of a user's class needs the user's module.
    package.__dict__["__namesake__"] = namesake.get


def _refuse_doubles(name: str, spec: ModuleSpec, package: ModuleType) -> None:
    """Refuse a user's module that defines a public name of ours."""
    public = {*getattr(package, "__all__", ())}
    for file in _files(spec):
        try:
            with open(file, "rb") as source:
                tree = ast.parse(source.read())
        except (OSError, SyntaxError, ValueError):
            continue  # Python's own error, when it is imported, says more
        for node in tree.body:
            if isinstance(node, _DEFINITIONS) and node.name in public:
                raise ImportError(
                    f"{file}:{node.lineno}: {node.name!r} is also a name of bequeath's package "
                    f"{name!r}, which this file is called like: rename the file"
                )
    for folder in spec.submodule_search_locations or ():
        both = {*os.listdir(folder)} & {*os.listdir(os.path.join(ROOT, name))}
        both -= {"__init__.py", "__pycache__", "py.typed"}
        if both:
            raise ImportError(
                f"{os.path.join(folder, min(both))} takes the place of a module of bequeath's "
                f"package {name!r}: rename {folder}"
            )


def _files(spec: ModuleSpec) -> list[str]:
    return [spec.origin] if spec.origin is not None and spec.origin.endswith(".py") else []


def _overwritten(name: str, owner: str) -> str:
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
