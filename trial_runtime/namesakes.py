"""Lets a user's module and a package of ours have one name in one process.

A user's module ``tuners`` beside a script comes before ours on ``sys.path``. One module stands for
both then: code of ours finds our package behind that name, and all other code finds the user's
module, and our package where that lacks a name. The user's module runs when it is first asked for
a name.

Imports only what a fresh trial can afford, and nothing of ours: it may be loaded by its file.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from types import FrameType, ModuleType
from typing import Any, Optional

#: Our packages, by a file that only ours have.
_MARKS = {
    "bequeath": "packages.py",
    "dispatcher": "findings.py",
    "nfs_setup": "undo.py",
    "trial_runtime": "session_file.py",
    "tuners": "inheriting.py",
}

#: The folders that our packages lie in side by side: this one may be reached by a link.
_ROOTS = tuple(
    {os.path.dirname(os.path.dirname(way(__file__))) for way in (os.path.abspath, os.path.realpath)}
)
_OURS = tuple(os.path.join(root, name, "") for root in _ROOTS for name in _MARKS)


class SharedName(ModuleType):
    """Two modules of one name, the user's and ours, for each code the one that it means.

    Args:
        ours: the package.
        spec: of the user's module.
        theirs: the user's module, if it is loaded already.
    """

    def __init__(self, ours: ModuleType, spec: ModuleSpec, theirs: Optional[ModuleType]) -> None:
        super().__init__(ours.__name__)
        folders = [*ours.__path__, *(spec.submodule_search_locations or ())]
        vars(self).update(
            __spec__=spec, __path__=folders, _bequeath_ours=ours, _bequeath_theirs=theirs
        )

    def __getattr__(self, name: str) -> Any:
        ours: ModuleType = vars(self)["_bequeath_ours"]
        if _is_asked_by_us(sys._getframe(1)):
            return getattr(ours, name)
        theirs = vars(self)["_bequeath_theirs"]
        if theirs is None and name.startswith("__") and name != "__all__":
            # Tools look at all modules that are loaded. They are no reason to run the user's.
            if name == "__file__":
                return vars(self)["__spec__"].origin
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        theirs = users_own(self)
        if name == "__all__" and not hasattr(theirs, name):
            return [each for each in vars(theirs) if not each.startswith("_")]
        return getattr(theirs, name) if hasattr(theirs, name) else getattr(ours, name)

    def __setattr__(self, name: str, value: Any) -> None:
        of_ours = (getattr(value, "__file__", None) or "").startswith(_OURS)
        if of_ours and getattr(value, "__name__", "") == f"{self.__name__}.{name}":
            setattr(vars(self)["_bequeath_ours"], name, value)  # by the import of a module of ours
        else:
            setattr(users_own(self), name, value)

    def __delattr__(self, name: str) -> None:
        delattr(users_own(self), name)

    def __dir__(self) -> list[str]:
        return sorted({*dir(vars(self)["_bequeath_ours"]), *dir(users_own(self))})


def users_own(module: Any) -> Any:
    """Return the user's module where one stands for two; any other one is returned as it is."""
    if not isinstance(module, SharedName):
        return module
    spec: ModuleSpec = vars(module)["__spec__"]
    theirs = vars(module)["_bequeath_theirs"]
    if theirs is None:
        from importlib.util import module_from_spec

        theirs = vars(module)["_bequeath_theirs"] = module_from_spec(spec)
        try:
            if spec.loader is not None:
                spec.loader.exec_module(theirs)
        except BaseException:
            vars(module)["_bequeath_theirs"] = None
            raise
    return theirs


def take_place(name: str, root: str) -> None:
    """Let our code import its package from ``root``, where a user's module comes before it.

    Raises:
        ImportError: the user's is a package with a module that is called like one of ours.
    """
    there = sys.modules.get(name)
    spec = PathFinder.find_spec(name) if there is None else getattr(there, "__spec__", None)
    place = os.path.realpath(os.path.join(root, name))
    own = os.path.join(place, "__init__.py")
    if isinstance(there, SharedName) or spec is None or _is_ours(spec):
        return
    if not os.path.isfile(own):
        return  # a trial on a machine that has no tuners, or an import that will fail by itself
    from importlib.util import module_from_spec, spec_from_file_location

    for each in _same_modules(spec, place):
        raise ImportError(
            f"{each} takes the place of a module of bequeath's package {name!r}: "
            f"rename {os.path.dirname(each)}"
        )
    ours_spec = spec_from_file_location(name, own, submodule_search_locations=[place])
    assert ours_spec is not None
    assert ours_spec.loader is not None
    ours = module_from_spec(ours_spec)
    sys.modules[name] = SharedName(ours, spec, there)
    try:
        ours_spec.loader.exec_module(ours)
    except BaseException:
        sys.modules.pop(name)
        if there is not None:
            sys.modules[name] = there
        raise


def admit(folder: str, *, last: bool = False) -> None:
    """Let code import the modules of a folder that are called like packages of ours.

    Args:
        folder: the user's.
        last: it comes last on ``sys.path``, so that any package of ours is found before it. Where
            it is first, only those are that this process has imported.
    """
    for name, spec in in_folder(folder).items():
        if last and name not in sys.modules:
            try:
                import_module(name)
            except ImportError:
                continue  # nothing is found before it
        ours = sys.modules.get(name)
        if ours is None or isinstance(ours, SharedName) or not hasattr(ours, "__path__"):
            continue
        if not any(_same_modules(spec, each) for each in ours.__path__):
            sys.modules[name] = SharedName(ours, spec, None)


def in_folder(folder: str) -> dict[str, ModuleSpec]:
    """Find the modules of a folder that are called like packages of ours, and are not ours."""
    ends = (".py", os.path.join("", "__init__.py"))
    found = {}
    for name in _MARKS:
        if any(os.path.isfile(os.path.join(folder, f"{name}{end}")) for end in ends):
            spec = PathFinder.find_spec(name, [folder])
            if spec is not None and not _is_ours(spec):
                found[name] = spec
    return found


def _is_ours(spec: ModuleSpec) -> bool:
    """Whether it is our package, or a copy of it, such as one that came with the user's code."""
    folders = spec.submodule_search_locations or ()
    return any(os.path.isfile(os.path.join(each, _MARKS[spec.name])) for each in folders)


def _same_modules(spec: ModuleSpec, place: str) -> list[str]:
    """List what a user's package has under a name that ours has, too."""
    same = []
    for folder in spec.submodule_search_locations or ():
        both = {*os.listdir(folder)} & {*os.listdir(place)} - {"__init__.py", "__pycache__"}
        names = sorted(each for each in both if each.partition(".")[0].isidentifier())
        same += [os.path.join(folder, each) for each in names if each != "py.typed"]
    return same


def _is_asked_by_us(frame: Optional[FrameType]) -> bool:
    """Whether the code that asks for a name is ours; Python's import system asks for others."""
    while frame is not None and frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename.startswith(_OURS)
