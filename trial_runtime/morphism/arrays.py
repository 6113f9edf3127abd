"""The operations that morphisms need of an array, for numpy's and torch's alike."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from trial_runtime.errors import WeightsMismatch

Array = Any
"""A numpy array or a torch tensor."""

Weights = Mapping[str, Array]


def is_torch(array: Array) -> bool:
    """Whether it is a tensor of torch; torch is not imported to find out."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def detached(array: Array) -> Array:
    """The same values without a history of gradients."""
    return array.detach() if is_torch(array) else array


def zeros(shape: Sequence[int], like: Array) -> Array:
    """Zeros of this type, on the same device."""
    if is_torch(like):
        return like.detach().new_zeros(tuple(shape))
    import numpy as np

    return np.zeros(tuple(shape), dtype=like.dtype)


def constant(values: Any, like: Array) -> Array:
    """Values (numbers, lists, arrays) in the type and on the device of another array."""
    if is_torch(like):
        import torch

        return torch.as_tensor(values, dtype=like.dtype, device=like.device)
    import numpy as np

    return np.asarray(values, dtype=like.dtype)


def take(array: Array, places: Sequence[int], axis: int) -> Array:
    """The slices at some places of an axis.

    Args:
        array: of any shape.
        places: indices along the axis, in the order of the result; one may come twice.
        axis: number of the axis.
    """
    return detached(array)[(slice(None),) * axis + (list(places),)]


def join(arrays: Sequence[Array], axis: int) -> Array:
    """Concatenates."""
    if is_torch(arrays[0]):
        import torch

        return torch.cat([detached(array) for array in arrays], dim=axis)
    import numpy as np

    return np.concatenate(arrays, axis=axis)


def along(values: Array, axis: int, dimensions: int) -> Array:
    """A vector shaped so that it multiplies along one axis of an array.

    Args:
        values: the vector.
        axis: number of the axis.
        dimensions: of the array.
    """
    return values.reshape(tuple(-1 if each == axis else 1 for each in range(dimensions)))


def fetch(weights: Weights, name: str) -> Array:
    """A tensor by name.

    Raises:
        WeightsMismatch: there is none.
    """
    if name not in weights:
        raise WeightsMismatch(
            f"there is no tensor {name!r} to morph",
            hint="name a layer by what stands before '.weight' in the state dict",
        )
    return weights[name]


def weight_of(weights: Weights, layer: str) -> Array:
    """A layer's ``weight``, which has outputs on the first axis and inputs on the second.

    Raises:
        WeightsMismatch: there is none, or it has fewer than two axes.
    """
    weight = fetch(weights, f"{layer}.weight")
    if len(weight.shape) < 2:
        raise WeightsMismatch(
            f"{layer!r} is no linear or convolutional layer: its weight has shape "
            f"{tuple(weight.shape)}",
            hint="batch norms and the like go under through=",
        )
    return weight


def must_be_free(weights: Weights, *names: str) -> None:
    """Refuses to overwrite.

    Raises:
        WeightsMismatch: one of the names is taken.
    """
    for name in names:
        if name in weights:
            raise WeightsMismatch(f"there is a tensor {name!r} already", hint="give it a new name")
