"""A notebook without its server, and another process that imports what was written of it."""

from __future__ import annotations

import importlib.util
import linecache
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from dispatcher.notebook.function_source import check_stands_alone, module_source
from trial_runtime.cells import DATA


class Cells:
    """Runs texts as IPython does: in ``__main__``, their lines kept, the texts in ``In``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._module = types.ModuleType("__main__")
        self.names = vars(self._module)
        self.names["In"] = [""]
        monkeypatch.setitem(sys.modules, "__main__", self._module)

    def run(self, text: str) -> dict[str, Any]:
        """Run a cell; return all globals."""
        number = len(self.names["In"])
        name = f"/tmp/ipykernel_{id(self)}/{number}.py"
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        self.names["In"].append(text)
        exec(compile(text, name, "exec", dont_inherit=True), self.names)
        return self.names


class Elsewhere:
    """Another process, as far as a module that was written is concerned."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self._monkeypatch = monkeypatch
        self._many = 0

    def write(self, thing: Any) -> Path:
        """Write a definition out, with its data beside it."""
        written = module_source(check_stands_alone(thing, _kind(thing)))
        self._many += 1
        place = self.folder / str(self._many)
        (place / DATA).mkdir(parents=True)
        for name, content in written.data.items():
            (place / DATA / name).write_bytes(content)
        file = place / "bequeath_trial.py"
        file.write_text(written.text)
        return file

    def names(self, thing: Any) -> dict[str, Any]:
        """Write it out and import that; return the globals there."""
        return self.imported(self.write(thing))

    def imported(self, file: Path) -> dict[str, Any]:
        """Import a module of this file anew."""
        spec = importlib.util.spec_from_file_location("bequeath_trial", file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        self._monkeypatch.setitem(sys.modules, "bequeath_trial", module)
        spec.loader.exec_module(module)
        return vars(module)

    def data(self) -> list[str]:
        """The names of the data of the newest one."""
        return sorted(each.name for each in (self.folder / str(self._many) / DATA).iterdir())


def _kind(thing: Any) -> str:
    return "tuner" if isinstance(thing, type) else "trial"
