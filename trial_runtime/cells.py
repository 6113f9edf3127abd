"""Code that comes from a notebook: the data that its globals hold, and the lines of its cells.

The dispatcher writes functions of a notebook out as a module, and what they use beside it: each
value is a file that is named by its digest. Nothing here is a pickle.

Imports only what a fresh trial can afford: numpy, torch and pandas come with data of theirs.
"""

from __future__ import annotations

import base64
import json
import os
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from io import BytesIO
from typing import TYPE_CHECKING, Any, Optional

from trial_runtime.errors import TrialRuntimeError

if TYPE_CHECKING:
    import traceback

#: The folder beside the module that has the data.
DATA = "data"

#: The global of such a module that has its lines: first and last line here, the cell's name, and
#: what makes a line of the cell out of one here. It is written at the end.
LINES = "__bequeath_cells__"

#: The key that marks a value which JSON has no form for.
MARK = "$"

_CELL = re.compile(r'^([ |]*)File "(Cell(?: \[\d+\])?)", line ', re.MULTILINE)


class CellDataError(TrialRuntimeError):
    """Raised when data of a notebook is not beside the code, or is not what was stored."""


class CellData:
    """The data of a notebook, as its code asks for them by the names of files.

    Args:
        module: the file of the module that asks.
    """

    def __init__(self, module: str) -> None:
        self._folder = os.path.join(os.path.dirname(os.path.abspath(module)), DATA)

    def array(self, name: str) -> Any:
        """Load an array of numpy's, which is the trial's own to change."""
        import numpy

        return numpy.load(BytesIO(self._content(name)), allow_pickle=False)

    def scalar(self, dtype: str, value: Any) -> Any:
        """Make one number of a type of numpy's."""
        import numpy

        return numpy.dtype(dtype).type(value)

    def tensor(
        self, name: str, dtype: str, shape: tuple[int, ...], *, requires_grad: bool = False
    ) -> Any:
        """Load a tensor of torch's onto the CPU.

        Args:
            name: of the file, an array of the tensor's bytes.
            dtype: its type, as torch calls it.
            shape: its shape.
            requires_grad: whether it wants a gradient.
        """
        import torch

        raw, kind = torch.from_numpy(self.array(name)), getattr(torch, dtype)
        made = raw.view(kind).reshape(shape) if len(raw) else torch.empty(shape, dtype=kind)
        return made.requires_grad_() if requires_grad else made

    def frame(self, name: str) -> Any:
        """Load a frame or a series of pandas'."""
        from trial_runtime.cell_frames import read

        return read(self._content(name))

    def plain(self, name: str) -> Any:
        """Load plain values of Python."""
        return from_plain(json.loads(self._content(name)))

    def float(self, text: str) -> Any:
        """Make a number that no literal stands for."""
        return float(text)

    def path(self, text: str) -> Any:
        """Make a path."""
        from pathlib import Path

        return Path(text)

    def member(self, module: str, name: str = "") -> Any:
        """Import a module, or what it has under a name."""
        member: Any = import_module(module)
        for part in filter(None, name.split(".")):
            member = getattr(member, part)
        return member

    def _content(self, name: str) -> bytes:
        from blake3 import blake3

        path = os.path.join(self._folder, name)
        hint = "start the experiment anew from the notebook; data of an experiment never changes"
        try:
            with open(path, "rb") as file:
                content = file.read()
        except OSError as error:
            text = f"data of the notebook cannot be read: {error.strerror}"
            raise CellDataError(text, hint=hint, where=path) from None
        if blake3(content).hexdigest() != name.partition(".")[0]:
            text = "data of the notebook is damaged: its digest is another one"
            raise CellDataError(text, hint=hint, where=path)
        return content


def from_plain(tree: Any) -> Any:
    """Make plain values of what stands for them in JSON."""
    if isinstance(tree, list):
        return [from_plain(each) for each in tree]
    if not isinstance(tree, dict):
        return tree
    if MARK not in tree:
        return {key: from_plain(each) for key, each in tree.items()}
    kind, value = tree[MARK], tree["v"]
    if kind == "float":
        return float(value)
    if kind == "int":
        return int(value, 16)
    if kind == "complex":
        return complex(*map(float, value))
    if kind == "bytes":
        return base64.b64decode(value)
    if kind == "path":
        from pathlib import Path

        return Path(value)
    members = [from_plain(each) for each in value]
    if kind == "dict":
        return dict(members)
    return {"tuple": tuple, "set": set, "frozenset": frozenset}[kind](members)


# -- lines of cells ------------------------------------------------------------------------------

#: Lines of modules by their files.
Tables = dict[str, list[tuple[int, int, str, int]]]


def name_cells(shown: traceback.TracebackException, error: BaseException) -> None:
    """Let a traceback name the lines of cells, in place of those of the module made of them.

    Args:
        shown: is changed; its lines of text are known already.
        error: the exception that it shows.
    """
    tables: Tables = {}
    for each in _chain(error):
        trace = each.__traceback__
        while trace is not None:
            code, names = trace.tb_frame.f_code, trace.tb_frame.f_globals
            if LINES in names:
                tables[code.co_filename] = names[LINES]
            trace = trace.tb_next
    if tables:
        _rename(shown, tables, set())


def in_cells(text: str) -> str:
    """Return the text of a traceback with cells named as cells, and not as files."""
    return _CELL.sub(r"\1\2, line ", text)


def _chain(error: Optional[BaseException]) -> Iterator[BaseException]:
    """Yield an exception and all that it came from."""
    waiting, seen = [error], set()
    while waiting:
        one = waiting.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            yield one
            waiting += [one.__cause__, one.__context__, *getattr(one, "exceptions", ())]


def _rename(shown: traceback.TracebackException, tables: Tables, seen: set[int]) -> None:
    if id(shown) in seen:
        return
    seen.add(id(shown))
    for frame in shown.stack:
        for first, last, cell, shift in tables.get(frame.filename, ()):
            if frame.lineno is not None and first <= frame.lineno <= last:
                frame.filename, frame.lineno = cell, frame.lineno + shift
                if sys.version_info >= (3, 11) and frame.end_lineno is not None:
                    frame.end_lineno += shift
                break
    linked = [shown.__cause__, shown.__context__]
    if sys.version_info >= (3, 11):
        linked += shown.exceptions or ()
    for each in linked:
        if each is not None:
            _rename(each, tables, seen)
