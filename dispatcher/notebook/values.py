"""Values of a notebook as expressions of Python, and the files that these read.

Small plain values are literals. Arrays, tensors, frames and large plain values are files, named by
the digest of their content: equal data is one file. Nothing is pickled, so that no file can run
code, and a class of the notebook needs no copy of itself.
"""

from __future__ import annotations

import base64
import inspect
import json
import math
import re
import sys
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import PurePath
from types import FunctionType, ModuleType
from typing import Any, Final

from dispatcher.notebook.frames import frame_content
from dispatcher.notebook.misfit import CannotTravel
from dispatcher.notebook.sources import attribute_of
from trial_runtime.cells import MARK
from trial_runtime.namesakes import users_own

#: Bytes of one value, and of all values of an experiment.
MOST_BYTES: Final = 256 << 20
MOST_IN_ALL: Final = 1 << 30

#: Files of an experiment's data.
MOST_FILES: Final = 1_000

#: Characters of a literal; a longer one is a file.
LONGEST_LITERAL: Final = 1_000

#: Levels of lists, tuples, sets and mappings in one another, and members of all of them.
MOST_LEVELS: Final = 50
MOST_MEMBERS: Final = 2_000_000

#: Characters of the expressions of one container; Python reads them at each start of a trial.
MOST_SOURCE: Final = 4 << 20

#: The name of the data in the code that is written.
DATA_NAME: Final = "_bequeath"

_CONTAINERS = (list, tuple, set, frozenset, dict)

#: Makes a definition of a notebook known to the code that is written; returns its name there.
Defines = Callable[[FunctionType | type], str]


class CellValues:
    """The data of one experiment's code, each value once.

    Attributes:
        files: content by name.
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def expression(self, value: Any, define: Defines) -> str:
        """Return an expression that makes an equal value in another process.

        Args:
            value: of a notebook's global, or of a variable around a function.
            define: is called for functions and classes of cells in it.

        Raises:
            CannotTravel: it is no data, or too much of it.
        """
        _look_through(value)
        return self._expression(value, define)

    def _expression(self, value: Any, define: Defines) -> str:
        if (literal := _literal(value)) is not None:
            if len(literal) <= LONGEST_LITERAL:
                return literal
            content = json.dumps(_plain(value), separators=(",", ":")).encode()
            return self._kept("plain", content, ".json")
        if (text := self._of_library(value)) is not None:
            return text
        if isinstance(value, FunctionType | type | ModuleType):
            return _imported(value) or define(_definition(value))
        if type(value) in _CONTAINERS:
            return self._container(value, define)
        if (imported := _imported(value)) is not None:
            return imported
        raise _is_no_data(value)

    def _container(self, value: Any, define: Defines) -> str:
        if type(value) is dict:
            pairs = [
                f"{self._expression(key, define)}: {self._expression(item, define)}"
                for key, item in value.items()
            ]
            _demand_short(pairs)
            return f"{{{', '.join(pairs)}}}"
        if len(value) > LONGEST_LITERAL and (of_numpy := self._numbers(value)) is not None:
            return of_numpy
        members = [self._expression(each, define) for each in value]
        _demand_short(members)
        if type(value) is tuple:
            return f"({', '.join(members)}{',' * (len(members) == 1)})"
        if type(value) is list:
            return f"[{', '.join(members)}]"
        raise CannotTravel(
            f"it is a {type(value).__name__} that holds more than plain values",
            "make it a list, or a mapping",
        )

    def _numbers(self, value: Any) -> str | None:
        """Return the expression for a long list or tuple of numbers of one type of numpy's."""
        numpy, kinds = sys.modules.get("numpy"), {type(each) for each in value}
        if numpy is None or len(kinds) > 1 or not isinstance(value, list | tuple):
            return None
        if not issubclass(kinds.pop(), numpy.bool_ | numpy.number):
            return None
        made = f"{DATA_NAME}.member('builtins', {type(value).__name__!r})"
        return f"{made}({self._array(numpy.array(value), numpy)})"

    def _of_library(self, value: Any) -> str | None:
        """Return the expression for a value of numpy's, torch's or pandas'."""
        numpy, torch, pandas = (sys.modules.get(one) for one in ("numpy", "torch", "pandas"))
        if torch is not None and isinstance(value, torch.Tensor):
            return self._tensor(value, torch)
        if torch is not None and isinstance(value, torch.dtype):
            return f"{DATA_NAME}.member('torch', {str(value).rpartition('.')[2]!r})"
        if torch is not None and isinstance(value, torch.device):
            return f"{DATA_NAME}.member('torch', 'device')({str(value)!r})"
        if numpy is not None and isinstance(value, numpy.ndarray):
            return self._array(value, numpy)
        if numpy is not None and isinstance(value, numpy.generic):
            return self._scalar(value, numpy)
        if numpy is not None and isinstance(value, numpy.dtype) and value.isbuiltin == 1:
            return f"{DATA_NAME}.member('numpy', 'dtype')({value.str!r})"
        if pandas is not None and isinstance(value, pandas.DataFrame | pandas.Series):
            return self._kept("frame", frame_content(value), ".npz")
        return None

    def _array(self, value: Any, numpy: Any) -> str:
        if type(value) not in (numpy.ndarray, numpy.memmap):
            raise CannotTravel(
                f"it is a {type(value).__name__}, and no plain array",
                "make it one: numpy.asarray(x)",
            )
        if value.dtype.hasobject:
            raise CannotTravel(
                "it is an array of objects of Python",
                "give it a type of its own, such as x.astype(float), or make it a list",
            )
        _demand_room(value.nbytes)
        return self._kept("array", _npy(value, numpy), ".npy")

    def _scalar(self, value: Any, numpy: Any) -> str:
        if value.dtype.kind in "biuf" and value.dtype.itemsize <= 8:
            return f"{DATA_NAME}.scalar({value.dtype.str!r}, {_literal(value.item())})"
        if value.dtype.hasobject:
            raise _is_no_data(value)
        return f"{self._kept('array', _npy(numpy.asarray(value), numpy), '.npy')}[()]"

    def _tensor(self, value: Any, torch: Any) -> str:
        advice = ""
        if type(value) is not torch.Tensor:
            advice = f"it is a {type(value).__name__}; take its values: x.detach()"
        elif value.device.type != "cpu":
            advice = f"it lies on {value.device}; take a copy: x.cpu(), and move it in the function"
        elif value.layout is not torch.strided or value.is_quantized:
            advice = "it is not dense; make it so: x.to_dense() or x.dequantize()"
        elif value.requires_grad and not value.is_leaf:
            advice = "it hangs in a graph; take its values: x.detach()"
        if advice:
            reason, _, hint = advice.partition("; ")
            raise CannotTravel(reason, hint)
        _demand_room(value.nbytes)
        flat = value.detach().contiguous().resolve_conj().resolve_neg().reshape(-1)
        raw = flat.view(torch.uint8).numpy()
        name = self._name(_npy(raw, sys.modules["numpy"]), ".npy")
        dtype, shape = str(value.dtype).rpartition(".")[2], tuple(value.shape)
        wants = ", requires_grad=True" if value.requires_grad else ""
        return f"{DATA_NAME}.tensor({name!r}, {dtype!r}, {shape!r}{wants})"

    def _kept(self, how: str, content: bytes, ending: str) -> str:
        return f"{DATA_NAME}.{how}({self._name(content, ending)!r})"

    def _name(self, content: bytes, ending: str) -> str:
        """Keep a file, unless it is there; return its name, which is its digest."""
        from blake3 import blake3

        _demand_room(len(content))
        name = blake3(content).hexdigest() + ending
        if name not in self.files:
            held = sum(map(len, self.files.values()))
            if len(self.files) >= MOST_FILES or held + len(content) > MOST_IN_ALL:
                raise CannotTravel(
                    f"the functions use more than {MOST_FILES:,} arrays or "
                    f"{_mib(MOST_IN_ALL)} of data together",
                    "write the data to files and read them in the function; stack small arrays "
                    "into one",
                )
            self.files[name] = content
        return name


def _npy(array: Any, numpy: Any) -> bytes:
    file = BytesIO()
    numpy.save(file, numpy.asarray(array), allow_pickle=False)
    return file.getvalue()


def _mib(nbytes: int) -> str:
    return f"{nbytes / (1 << 20):,.0f} MiB"


def _demand_room(nbytes: int) -> None:
    if nbytes > MOST_BYTES + 4096:  # with the head of a file
        raise CannotTravel(
            f"it has {_mib(nbytes)}, and one value may have {_mib(MOST_BYTES)}",
            "write it to a file (numpy.save) and read that in the function",
        )


def _demand_short(members: list[str]) -> None:
    if sum(map(len, members)) > MOST_SOURCE:
        raise CannotTravel(
            f"its {len(members):,} members are no plain values, and too many of them",
            "make an array of them: numpy.array(x)",
        )


def _is_no_data(value: Any) -> CannotTravel:
    kind = type(value).__name__
    if inspect.isgenerator(value):
        return CannotTravel("a generator cannot be copied", "make a list of it: x = list(x)")
    if hasattr(type(value), "state_dict"):
        return CannotTravel(
            f"it is an object of the class {kind}",
            "build it in the function; x.state_dict() is data, if the function shall start from it",
        )
    return CannotTravel(
        f"it is an object of the class {kind}, and no data",
        "make it in the function, or keep what the function needs of it (arrays, numbers, texts) "
        "in variables of their own",
    )


# -- plain values ----------------------------------------------------------------------------------


def _look_through(value: Any) -> None:
    """Raise for what contains itself, nests too deeply or has too many members."""
    members = 0
    line: list[int] = []  # of the containers that are open
    waiting: list[Iterator[Any]] = [iter((value,))]
    while waiting:
        for each in waiting[-1]:
            members += 1
            if type(each) not in _CONTAINERS:
                continue
            if id(each) in line:
                raise CannotTravel(
                    f"it is a {type(each).__name__} that contains itself",
                    "keep the parts that the function needs in variables of their own",
                )
            if len(line) >= MOST_LEVELS:
                raise CannotTravel(
                    f"it nests more than {MOST_LEVELS} levels deep", "make it flatter, or a file"
                )
            line.append(id(each))
            waiting.append(_members(each))
            break
        else:
            waiting.pop()
            if line:
                line.pop()
        if members > MOST_MEMBERS:
            raise CannotTravel(
                f"it has more than {MOST_MEMBERS:,} members", "make arrays of them: numpy.array(x)"
            )


def _members(value: Any) -> Iterator[Any]:
    if type(value) is dict:
        for pair in value.items():
            yield from pair
    else:
        yield from value


def _literal(value: Any) -> str | None:
    """Return plain values as Python writes them; None if it holds anything else."""
    kind = type(value)
    if value is None or kind in (bool, str, bytes):
        return repr(value)
    if kind is int:
        return repr(value) if abs(value) < 1 << 4096 else hex(value)
    if kind is float:
        return repr(value) if math.isfinite(value) else f"{DATA_NAME}.float({str(value)!r})"
    if kind is complex:
        parts = f"{_literal(value.real)}, {_literal(value.imag)}"
        return f"{DATA_NAME}.member('builtins', 'complex')({parts})"
    if isinstance(value, PurePath):
        return f"{DATA_NAME}.path({str(value)!r})"
    if kind not in _CONTAINERS:
        return None
    if kind is dict:
        pairs = [(_literal(key), _literal(item)) for key, item in value.items()]
        if any(None in pair for pair in pairs):
            return None
        return f"{{{', '.join(f'{key}: {item}' for key, item in pairs)}}}"
    members = [_literal(each) for each in value]
    if None in members:
        return None
    texts = [str(each) for each in members]
    if kind is list:
        return f"[{', '.join(texts)}]"
    if kind is tuple:
        return f"({', '.join(texts)}{',' * (len(texts) == 1)})"
    inside = ", ".join(sorted(texts)) or "*()"
    if kind is set:
        return f"{{{inside}}}"
    return f"{DATA_NAME}.member('builtins', 'frozenset')({{{inside}}})"


def _plain(value: Any) -> Any:
    """Return what stands for a plain value in JSON, as :func:`trial_runtime.cells.from_plain`
    reads it."""
    kind = type(value)
    if value is None or kind in (bool, str):
        return value
    if kind is int:  # Python refuses to write very long ones as decimals
        return value if abs(value) < 1 << 4096 else {MARK: "int", "v": hex(value)}
    if kind is float:
        return value if math.isfinite(value) else {MARK: "float", "v": str(value)}
    if kind is complex:
        return {MARK: "complex", "v": [str(value.real), str(value.imag)]}
    if kind is bytes:
        return {MARK: "bytes", "v": base64.b64encode(value).decode()}
    if isinstance(value, PurePath):
        return {MARK: "path", "v": str(value)}
    if kind is dict:
        if MARK not in value and all(type(key) is str for key in value):
            return {key: _plain(item) for key, item in value.items()}
        return {MARK: "dict", "v": [[_plain(key), _plain(item)] for key, item in value.items()]}
    members = [_plain(each) for each in value]
    if kind in (set, frozenset):
        members.sort(key=json.dumps)
    return members if kind is list else {MARK: kind.__name__, "v": members}


# -- what is imported ------------------------------------------------------------------------------


def origin_of(value: Any) -> tuple[str, str] | None:
    """Return the module and the name that another process can import a value by, if there are."""
    module, name = attribute_of(value, "__module__"), attribute_of(value, "__qualname__")
    if not isinstance(module, str) or not isinstance(name, str) or module == "__main__":
        return None
    if attribute_of(users_own(sys.modules.get(module)), name) is value:
        return module, name
    return None


def _imported(value: Any) -> str | None:
    if isinstance(value, ModuleType):
        return f"{DATA_NAME}.member({value.__name__!r})"
    origin = origin_of(value)
    if origin is None:
        return None
    return f"{DATA_NAME}.member({origin[0]!r}, {origin[1]!r})"


def _definition(value: Any) -> FunctionType | type:
    """Return it if it can be defined under a name."""
    if isinstance(value, ModuleType) or not re.fullmatch(r"[^\W\d]\w*", value.__name__):
        raise CannotTravel(
            "it holds a function without a name", "define that with 'def' and a name"
        )
    return value  # type: ignore[no-any-return]
