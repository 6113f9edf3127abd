"""Nested training state as JSON, without its tensors.

``flatten`` turns a state (dicts, lists, tuples, scalars, tensors) into a *skeleton* of JSON
values with named references to its tensors; ``rebuild`` turns it back, exactly: tuples stay
tuples, integer keys stay integers, NaN keeps its bits. Plain JSON values stand for
themselves; everything else is an object with the key ``$`` that names its kind.
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
import sys
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, Final

from trial_runtime.errors import CorruptWeights, WeightsError

# Deeper than any optimiser state, far from Python's own limit of 1,000 frames.
MAX_DEPTH: Final = 100
# A level of state takes at most four of JSON: {"$": …, "v": [[key, value]]}.
_MAX_JSON_DEPTH: Final = 4 * MAX_DEPTH + 8
# Other JSON readers keep 64 bits; larger integers (numpy's 128-bit generators) go as text.
_INT_LIMIT: Final = 1 << 63
# The bound of a forged integer's cost to parse: conversion from text is quadratic.
_MAX_INT_DIGITS: Final = 4000


def is_torch_tensor(value: object) -> bool:
    """Whether it is a torch tensor; does not import torch (a tensor's owner already did)."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_numpy_array(value: object) -> bool:
    """Whether it is a numpy array; does not import numpy."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def flatten(state: Any) -> tuple[Any, dict[str, Any]]:
    """Take the tensors out of a state.

    Args:
        state: nested dicts, lists and tuples of tensors (torch or numpy) and scalars; an
            object with a ``state_dict()`` (module, optimiser, scheduler) stands for it.

    Returns:
        The skeleton, and the tensors by name. A name is the path to the tensor joined by
        dots, so a module's parameters keep their own names.

    Raises:
        WeightsError: something in it cannot be stored; names the place.
    """
    flattener = _Flattener()
    skeleton = flattener.encode(state, (), 0)
    return skeleton, flattener.tensors


class _Flattener:
    def __init__(self) -> None:
        self.tensors: dict[str, Any] = {}

    def encode(self, value: Any, path: tuple[str, ...], depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise WeightsError(
                f"the state is nested deeper than {MAX_DEPTH} levels (or contains itself)",
                where=_spell(path[:4]) + "…",
            )
        if value is None or type(value) is bool:
            return value
        if type(value) is str:
            return _text(value, path)
        if type(value) is int:
            small = -_INT_LIMIT <= value < _INT_LIMIT
            return value if small else {"$": "int", "v": hex(value)}
        if type(value) is float:
            if math.isfinite(value):
                return value
            return {"$": "float", "v": struct.pack(">d", value).hex()}
        if is_torch_tensor(value) or is_numpy_array(value):
            return {"$": "tensor", "v": self._name(value, path)}
        if isinstance(value, dict):
            return self._mapping(value, path, depth)
        if type(value) in (list, tuple, set, frozenset):
            return self._sequence(value, path, depth)
        return self._scalar(value, path, depth)

    def _name(self, tensor: Any, path: tuple[str, ...]) -> str:
        wanted = ".".join(path) or "tensor"
        name, again = wanted, 1
        _text(name, path)
        # {"a": {"b": x}, "a.b": y}; and the one name that data files keep for themselves
        while name in self.tensors or name == "__metadata__":
            again += 1
            name = f"{wanted}#{again}"
        self.tensors[name] = tensor
        return name

    def _mapping(self, value: dict[Any, Any], path: tuple[str, ...], depth: int) -> Any:
        kind = {dict: "dict", OrderedDict: "odict", Counter: "counter"}.get(type(value))
        if kind is None:
            raise _cannot(value, path, "make it a plain dict")
        inner = [
            (key, self.encode(item, (*path, str(key)), depth + 1)) for key, item in value.items()
        ]
        if kind == "dict" and all(type(key) is str and key != "$" for key, _ in inner):
            return {_text(key, path): item for key, item in inner}
        node: dict[str, Any] = {
            "$": kind,
            "v": [[self.encode(key, (*path, "key"), depth + 1), item] for key, item in inner],
        }
        # torch keeps versions of the layers beside a state_dict, and load_state_dict asks.
        metadata = getattr(value, "_metadata", None)
        if metadata is not None:
            node["m"] = self.encode(metadata, (*path, "_metadata"), depth + 1)
        return node

    def _sequence(self, value: Any, path: tuple[str, ...], depth: int) -> Any:
        items = [
            self.encode(item, (*path, str(i)), depth + 1) for i, item in enumerate(_ordered(value))
        ]
        return items if type(value) is list else {"$": type(value).__name__, "v": items}

    def _scalar(self, value: Any, path: tuple[str, ...], depth: int) -> Any:
        if type(value) in (bytes, bytearray):
            return {"$": type(value).__name__, "v": base64.b64encode(value).decode("ascii")}
        if type(value) is complex:
            return {"$": "complex", "v": struct.pack(">dd", value.real, value.imag).hex()}
        numpy = sys.modules.get("numpy")
        if numpy is not None and isinstance(value, numpy.generic) and value.dtype.kind in "biufc":
            little = value.astype(value.dtype.newbyteorder("<"))
            return {"$": "numpy", "t": little.dtype.str, "v": little.tobytes().hex()}
        torch = sys.modules.get("torch")
        if torch is not None:
            if isinstance(value, torch.Size):
                return {"$": "size", "v": list(value)}
            if isinstance(value, (torch.device, torch.dtype)):
                return {"$": type(value).__name__, "v": str(value).removeprefix("torch.")}
        if callable(getattr(value, "state_dict", None)) and not isinstance(value, type):
            return self.encode(value.state_dict(), path, depth + 1)
        raise _cannot(value, path, "leave it out, or store what it is made from")


def _text(value: str, path: tuple[str, ...]) -> str:
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as fault:
            raise WeightsError(
                f"text that is no Unicode: {fault.reason}", where=repr(path)
            ) from None
    return value


def _ordered(value: Any) -> list[Any]:
    # A set has no order of its own; a stable one keeps equal states equal on disk.
    return sorted(value, key=repr) if isinstance(value, (set, frozenset)) else list(value)


def _spell(path: tuple[str, ...]) -> str:
    return "state" + "".join(f"[{part!r}]" for part in path)


def _cannot(value: object, path: tuple[str, ...], hint: str) -> WeightsError:
    kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
    return WeightsError(
        f"a value of type {kind} cannot be stored with weights", hint=hint, where=_spell(path)
    )


def fault(skeleton: Any) -> str:
    """The reason why a skeleton is unreadable, before its values are even looked at, or ''."""
    level = [skeleton]
    for _ in range(_MAX_JSON_DEPTH):
        inner: list[Any] = []
        for node in level:
            if isinstance(node, list):
                inner += node
            elif isinstance(node, dict):
                if "$" in node and ("v" not in node or not isinstance(node["$"], str)):
                    return "the state holds a node without a value"
                if node.get("$") in ("dict", "odict", "counter") and not _is_pairs(node["v"]):
                    return "the state holds a mapping without keys"
                inner += node.values()
        level = inner
        if not level:
            return ""
    return f"the state is nested deeper than {MAX_DEPTH} levels"


def _is_pairs(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(p, list) and len(p) == 2 for p in value)


def references(node: Any) -> Iterator[str]:
    """The names of all tensors that a skeleton refers to."""
    if isinstance(node, dict):
        if node.get("$") == "tensor":
            yield str(node.get("v"))
            return
        for inner in node.values():
            yield from references(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from references(inner)


def subtree(node: Any, key: str, where: str) -> Any:
    """The part of a skeleton at a path of keys joined by dots.

    Args:
        node: a skeleton.
        key: the path; "" for all of it.
        where: the path of the manifest, for the error.

    Raises:
        WeightsError: there is no such part; lists what there is.
    """
    left = key
    while left:
        children = _children(node)
        # Keys may hold dots themselves: the longest that fits is meant.
        part = max(
            (k for k in children if left == k or left.startswith(f"{k}.")), key=len, default=None
        )
        if part is None:
            raise WeightsError(
                f"the state has no part {key!r}; at this level there is: "
                + (", ".join(sorted(children)[:20]) or "nothing"),
                where=where,
            )
        node = children[part]
        left = left[len(part) + 1 :]
    return node


def _children(node: Any) -> dict[str, Any]:
    if isinstance(node, list):
        return {str(i): item for i, item in enumerate(node)}
    if not isinstance(node, dict):
        return {}
    kind = node.get("$")
    if kind is None:
        return node
    if kind in ("dict", "odict"):
        return {str(key): item for key, item in node["v"]}
    if kind == "tuple" and isinstance(node["v"], list):
        return {str(i): item for i, item in enumerate(node["v"])}
    return {}


def rebuild(node: Any, tensor: Callable[[str], Any], where: str = "") -> Any:
    """The state that a skeleton stands for.

    Args:
        node: a skeleton, or a part of one.
        tensor: gives the tensor of a name.
        where: the path it came from, for errors.

    Raises:
        CorruptWeights: the skeleton holds something that no writer of this version wrote.
    """
    try:
        return _decode(node, tensor)
    except (KeyError, TypeError, ValueError, binascii.Error, struct.error, RecursionError) as fault:
        raise CorruptWeights(
            f"the state in the manifest cannot be read: {fault!r}", where=where
        ) from fault


def _decode(node: Any, tensor: Callable[[str], Any]) -> Any:
    if isinstance(node, list):
        return [_decode(item, tensor) for item in node]
    if not isinstance(node, dict):
        return node
    if "$" not in node:
        return {key: _decode(item, tensor) for key, item in node.items()}
    kind, value = node["$"], node["v"]
    if kind == "tensor":
        return tensor(value)
    if kind in _MAPPINGS:
        pairs = [(_decode(key, tensor), _decode(item, tensor)) for key, item in value]
        mapping = _MAPPINGS[kind](pairs)
        if "m" in node:
            mapping._metadata = _decode(node["m"], tensor)
        return mapping
    if kind in _SEQUENCES:
        return _SEQUENCES[kind]([_decode(item, tensor) for item in value])
    return _decode_scalar(kind, value, node)


_MAPPINGS: Final[dict[str, Callable[[Any], Any]]] = {
    "dict": dict,
    "odict": OrderedDict,
    "counter": lambda pairs: Counter(dict(pairs)),
}
_SEQUENCES: Final[dict[str, Callable[[Any], Any]]] = {
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
}


def _decode_scalar(kind: str, value: Any, node: dict[str, Any]) -> Any:
    if kind == "float":
        return struct.unpack(">d", bytes.fromhex(value))[0]
    if kind == "int":
        if len(value) > _MAX_INT_DIGITS:
            raise ValueError("an integer of more digits than any generator has")
        return int(value, 16)
    if kind in ("bytes", "bytearray"):
        raw = base64.b64decode(value, validate=True)
        return raw if kind == "bytes" else bytearray(raw)
    if kind == "complex":
        return complex(*struct.unpack(">dd", bytes.fromhex(value)))
    if kind == "numpy":
        import numpy as np

        dtype = np.dtype(node["t"])
        if dtype.kind not in "biufc":
            raise ValueError(f"a numpy scalar of type {dtype}")
        return np.frombuffer(bytes.fromhex(value), dtype=dtype, count=1)[0]
    if kind in ("size", "device", "dtype"):
        import torch

        if kind == "size":
            return torch.Size(value)
        if kind == "device":
            return torch.device(value)
        found = getattr(torch, value)
        if not isinstance(found, torch.dtype):
            raise ValueError(f"{value!r} is not a torch dtype")
        return found
    raise ValueError(f"unknown kind {kind!r}; was it written by a newer version?")
