"""The tensors that a load copies into: a module's, or those of nested dictionaries."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trial_runtime.errors import WeightsError
from trial_runtime.weights.format import dtypes
from trial_runtime.weights.format.skeleton import is_numpy_array, is_torch_tensor
from trial_runtime.weights.loading.matching import Form


@dataclass(frozen=True)
class Target:
    """One tensor to be overwritten."""

    tensor: Any
    like: str  # "torch" or "numpy"
    form: Form

    def writable_bytes(self) -> memoryview | None:
        """The tensor's memory as flat bytes, or None where bytes cannot simply be put.

        Bytes cannot be put into tensors on a device, strided views, a foreign byte order.
        """
        if self.like == "torch":
            return _torch_bytes(self.tensor)
        array = self.tensor
        import numpy as np

        # No flat view of a strided array exists, and the byte order must be that of the file.
        if not array.flags.c_contiguous or array.dtype.str != array.dtype.newbyteorder("<").str:
            return None
        return memoryview(array.reshape(-1).view(np.uint8)) if array.size else memoryview(b"")

    def put(self, source: Any, corner: tuple[slice, ...] | None = None) -> None:
        """Copy values, converting them; only a corner of both sides if one is given."""
        target = self.tensor
        if corner is not None:
            source = source[corner]
        if self.like == "torch":
            import torch

            with torch.no_grad():
                (target if corner is None else target[corner]).copy_(source)
            return
        target[... if corner is None else corner] = source

    def touched(self) -> None:
        """Tell autograd that the values changed behind its back."""
        if self.like == "torch" and not self.tensor.is_inference():
            import torch

            torch.autograd.graph.increment_version(self.tensor.detach())


def _torch_bytes(tensor: Any) -> memoryview | None:
    import torch

    plain = tensor.detach()
    if plain.device.type != "cpu" or not plain.is_contiguous() or plain.is_conj() or plain.is_neg():
        return None
    if not plain.numel():
        return memoryview(b"")
    flat = plain.reshape(-1)
    if flat.is_complex():
        flat = torch.view_as_real(flat).reshape(-1)
    return memoryview(flat.view(torch.uint8).numpy())


def collect(into: Any) -> dict[str, Target]:
    """All tensors of ``into`` by name, named as ``save`` would name them.

    Args:
        into: a torch module, or nested mappings (and lists) of modules, tensors and arrays.
            Other values are left alone.

    Raises:
        WeightsError: it holds no tensor, or one that cannot be written to.
    """
    targets: dict[str, Target] = {}
    _collect(into, (), targets)
    if not targets:
        raise WeightsError(
            f"there is no tensor to load into in a {type(into).__qualname__}",
            hint="give a torch module, or a dict of tensors or arrays; without into= the "
            "stored state itself is returned",
        )
    return targets


def _collect(value: Any, path: tuple[str, ...], targets: dict[str, Target]) -> None:
    if is_torch_tensor(value):
        name = ".".join(path) or "tensor"
        if value.device.type == "meta" or value.is_quantized or value.is_sparse:
            raise WeightsError(
                f"cannot load into a tensor on {value.device} of layout {value.layout}",
                hint="make the module real first, for example with module.to_empty()",
                where=f"tensor {name!r}",
            )
        form = Form(dtypes.of_torch(value.dtype, name), tuple(value.shape))
        targets[name] = Target(value, "torch", form)
    elif is_numpy_array(value):
        name = ".".join(path) or "tensor"
        if not value.flags.writeable:
            raise WeightsError("the array is read-only", where=f"array {name!r}")
        form = Form(dtypes.of_numpy(value.dtype, name), tuple(value.shape))
        targets[name] = Target(value, "numpy", form)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            _collect(item, (*path, str(key)), targets)
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            _collect(item, (*path, str(index)), targets)
    elif _is_module(value):
        _collect(value.state_dict(), path, targets)
    elif callable(getattr(value, "state_dict", None)) and not isinstance(value, type):
        # Its numbers and its tensors belong together, and before the first step there are
        # no tensors to copy into.
        raise WeightsError(
            f"cannot load into a {type(value).__qualname__}",
            hint="x.load_state_dict(load(path, key='name it was saved under')) restores it",
            where=".".join(path),
        )


def _is_module(value: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.nn.Module)
