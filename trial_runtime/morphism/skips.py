"""Skip connections that do nothing yet."""

from __future__ import annotations

from trial_runtime.errors import WeightsMismatch
from trial_runtime.morphism.arrays import (
    Array,
    Weights,
    constant,
    detached,
    join,
    must_be_free,
    weight_of,
    zeros,
)


def hear(
    weights: Weights, layer: str, channels: int, *, place: int | None = None
) -> dict[str, Array]:
    """Returns weights in which a layer reads further inputs, with weights of zero.

    Elsken et al. (2018), section 3, network morphism type II: a skip by concatenation (or any new
    branch whose output is concatenated). For a linear layer after ``flatten`` count its inputs,
    not channels.

    Args:
        weights: the parent's.
        layer: name of the layer that will read them.
        channels: how many inputs are added.
        place: where among its inputs; None: behind all others.

    Raises:
        WeightsMismatch: no such layer, or no such place.
    """
    weight = detached(weight_of(weights, layer))
    inputs = weight.shape[1]
    at = inputs if place is None else place
    if channels < 1 or not 0 <= at <= inputs:
        raise WeightsMismatch(
            f"{layer!r} has {inputs} inputs; {channels} more cannot come in at {at}"
        )
    silent = zeros((weight.shape[0], channels, *weight.shape[2:]), like=weight)
    return {**weights, f"{layer}.weight": join([weight[:, :at], silent, weight[:, at:]], 1)}


def mix(weights: Weights, name: str, *, like: str) -> dict[str, Array]:
    """Returns weights with one more number, 1, for ``number * f(x) + (1 - number) * h(x)``.

    Elsken et al. (2018), section 3, network morphism type IV: a skip by addition. The number is to
    be trained with the rest; ``h`` may be the identity or any other branch of the same shape.

    Args:
        weights: the parent's.
        name: of the number.
        like: name of a tensor whose type and device it gets.

    Raises:
        WeightsMismatch: no such tensor, or the name is taken.
    """
    must_be_free(weights, name)
    if like not in weights:
        raise WeightsMismatch(f"there is no tensor {like!r} to take the type from")
    return {**weights, name: constant(1.0, like=weights[like])}
