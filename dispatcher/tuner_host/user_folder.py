"""Makes a folder of the author's importable, so that its modules import one another by plain names.

Names that collide with ours, or with anything installed, are kept apart: a folder may hold
its own ``tuners/``, ``dispatcher.py`` or ``utils.py``. Code in the folder then sees the module
beside it first, and through that the names which only the installed module has (so ``from tuners
import Tuner`` still finds ours); all other code sees the installed one. The standard library
always wins, as it does where such a folder is appended to ``sys.path``.

Without collisions, the usual case, this is no more than an entry of ``sys.path``.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

#: Colliding modules get a name that begins so, that both can be loaded.
PREFIX = "bequeath_user_code"

_OURS = frozenset({"bequeath", "dispatcher", "tuners", "trial_runtime", "nfs_setup"})


class UserFolder(importlib.abc.MetaPathFinder):
    """Makes one folder importable: :meth:`at`. Tuner and assessor may have one each."""

    def __init__(self, folder: Path, prefix: str) -> None:
        self.folder = folder
        self.prefix = prefix
        self.colliding = frozenset(name for name in _top_names(folder) if self._collides(name))

    @classmethod
    def at(cls, folder: Path) -> UserFolder:
        """Make a folder importable from now on, once."""
        folder = folder.resolve()
        known = _installed.get(folder)
        if known is None:
            number = len(_installed)
            known = cls(folder, f"{PREFIX}{number or ''}")
            known._install()
            _installed[folder] = known
        return known

    def _install(self) -> None:
        sys.path.append(str(self.folder))
        if self.colliding:
            root = ModuleType(self.prefix, "Modules of the tuner's folder whose names were taken.")
            root.__path__ = [str(self.folder)]
            sys.modules[self.prefix] = root
            sys.meta_path.insert(0, self)

    def load(self, name: str) -> ModuleType:
        """Import a module of the folder by its plain dotted name, or an installed one."""
        return importlib.import_module(self.known_as(name))

    def load_file(self, file: Path) -> ModuleType:
        """Import a module of the folder by its file."""
        name = file.stem
        if name.isidentifier() and name not in sys.stdlib_module_names:
            known = importlib.util.find_spec(self.known_as(name))
            if known is not None and known.origin == str(file):
                return self.load(name)  # its neighbours may import it, too
        word = "".join(letter if letter.isalnum() else "_" for letter in name)
        plain = f"{self.prefix}_file_{word}"  # no name that any import could mean
        spec = importlib.util.spec_from_file_location(plain, file)
        if spec is None or spec.loader is None:
            raise ImportError(f"{file} is no Python file")
        module = importlib.util.module_from_spec(spec)
        sys.modules[plain] = module
        if self.colliding:
            self._prepare(module)
        spec.loader.exec_module(module)
        return module

    def known_as(self, name: str) -> str:
        """The name in ``sys.modules`` of the module that the folder calls ``name``."""
        top = name.partition(".")[0]
        return f"{self.prefix}.{name}" if top in self.colliding and self._holds(name) else name

    # ---- the finder ----------------------------------------------------------------------

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """See :meth:`importlib.abc.MetaPathFinder.find_spec`.

        Finds modules of the folder; they get our ``__import__``, whatever their names.
        """
        top = fullname.partition(".")[0]
        if top == self.prefix:
            spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        elif path is None and top in sys.stdlib_module_names:
            return None
        else:
            where = [str(self.folder)] if path is None else path
            if path is None and top in self.colliding:
                return None
            spec = importlib.machinery.PathFinder.find_spec(fullname, where, target)
            if not self._is_inside(spec):
                return None
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = _Loader(self, spec.loader.name, spec.loader.path)
        return spec

    def _prepare(self, module: ModuleType) -> None:
        """Give a module the import statement of the folder."""
        module.__dict__["__builtins__"] = {**vars(builtins), "__import__": self._import}

    def _import(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        """Execute an import statement of code in the folder."""
        known = self.known_as(name) if level == 0 else name
        if known == name:
            if level == 0 and not fromlist and name.partition(".")[0] in self.colliding:
                importlib.import_module(name)  # tuners.base is ours, tuners is the folder's
                return self.load(name.partition(".")[0])
            return builtins.__import__(name, globals, locals, fromlist or (), level)
        if fromlist:
            return builtins.__import__(known, globals, locals, fromlist, 0)
        importlib.import_module(known)
        return sys.modules[f"{self.prefix}.{name.partition('.')[0]}"]

    # ---- the folder's contents -----------------------------------------------------------

    def _holds(self, name: str) -> bool:
        place = self.folder.joinpath(*name.split("."))
        return place.is_dir() or place.with_name(place.name + ".py").is_file()

    def _is_inside(self, spec: importlib.machinery.ModuleSpec | None) -> bool:
        return spec is not None and spec.origin is not None and _below(spec.origin, self.folder)

    def _collides(self, name: str) -> bool:
        if name in sys.stdlib_module_names:
            return False
        if name in _OURS:
            return not self._is_inside(importlib.util.find_spec(name))
        loaded = sys.modules.get(name)
        if loaded is not None:
            return not _below(getattr(loaded, "__file__", None) or "", self.folder)
        spec = importlib.machinery.PathFinder.find_spec(name)
        return spec is not None and spec.origin is not None and not self._is_inside(spec)


_installed: dict[Path, UserFolder] = {}


class _Loader(importlib.machinery.SourceFileLoader):
    """Runs a module of the folder under the folder's import statement."""

    def __init__(self, folder: UserFolder, name: str, path: str) -> None:
        super().__init__(name, path)
        self._folder = folder

    def exec_module(self, module: ModuleType) -> None:
        self._folder._prepare(module)
        _, _, plain = module.__name__.partition(f"{self._folder.prefix}.")
        if plain:  # before it runs: a tuners.py begins with "from tuners import Tuner"
            module.__dict__["__getattr__"] = _fallback(module.__name__, plain)
        super().exec_module(module)


def _fallback(mangled: str, plain: str) -> Any:
    """Look for names that the folder's module lacks in the installed one of the same name."""

    def __getattr__(attribute: str) -> Any:  # noqa: N807 - a module's own hook (PEP 562)
        if not attribute.startswith("__"):
            try:
                namesake = importlib.import_module(plain)
            except ImportError:
                namesake = None
            if namesake is not None and hasattr(namesake, attribute):
                return getattr(namesake, attribute)
        raise AttributeError(f"module {plain!r} ({mangled}) has no attribute {attribute!r}")

    return __getattr__


def _top_names(folder: Path) -> list[str]:
    """List importable names directly below the folder. Folders of data are not modules."""
    names = []
    for entry in folder.iterdir():
        if entry.suffix == ".py" and entry.is_file():
            names.append(entry.stem)
        elif entry.name.isidentifier() and entry.is_dir():
            # Without an __init__.py only a name of ours is worth keeping apart: a folder
            # "torch" that holds data must not hide the installed one.
            init = (entry / "__init__.py").is_file()
            if init or (entry.name in _OURS and any(entry.glob("*.py"))):
                names.append(entry.name)
    return [name for name in names if name.isidentifier()]


def _below(path: str, folder: Path) -> bool:
    return bool(path) and Path(path).resolve().is_relative_to(folder)
