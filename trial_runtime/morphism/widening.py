"""Net2Wider: more units, as copies that share their outgoing weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Union

from trial_runtime.errors import WeightsMismatch
from trial_runtime.morphism.arrays import (
    Array,
    Weights,
    along,
    constant,
    detached,
    fetch,
    join,
    take,
    weight_of,
)

if TYPE_CHECKING:
    import numpy as np

Reader = Union[str, tuple[str, int]]
"""A layer that reads the units: all its inputs, or as many from a place on."""


def wider(
    weights: Weights,
    layers: str | Sequence[str],
    width: int,
    *,
    into: Sequence[Reader],
    through: Sequence[str] = (),
    seed: int | Sequence[int] = 0,
    noise: float = 0.0,
) -> dict[str, Array]:
    """Returns weights in which a layer has more units, and the network the same function.

    Net2WiderNet of Chen et al. (2016): unit ``j`` of the wider layer is a copy of unit ``g(j)``,
    where ``g(j) = j`` for the old ones and drawn evenly from the old ones for the new; what reads
    the units gets ``W[:, g(j)]`` divided by the number of copies of ``g(j)``.

    Args:
        weights: the parent's.
        layers: the linear or convolutional layer by its name before ``.weight``; several that are
            added up (residual branches) grow together.
        width: how many units or channels it has afterwards.
        into: every layer that reads the units. A linear layer after ``flatten`` has several inputs
            a channel, next to one another; ``(name, place)`` is for one that reads several
            concatenated layers, this one from ``place`` on.
        through: per-channel layers on the way: batch norm, PReLU, a depthwise convolution.
        seed: of ``g`` and the noise.
        noise: standard deviation of what is added to the copies' incoming weights, relative to
            that of the weights themselves, so that copies can part, as in the paper; 0 keeps the
            function exactly.

    Raises:
        WeightsMismatch: a layer is missing, or its shape does not fit the others'.
    """
    import numpy as np

    names = [layers] if isinstance(layers, str) else list(layers)
    old = weight_of(weights, names[0]).shape[0]
    if width < old:
        raise WeightsMismatch(f"{names[0]!r} has {old} units already; {width} are not more")
    rng = np.random.default_rng(seed)
    drawn: list[int] = rng.integers(old, size=width - old).tolist()
    copied = [*range(old), *drawn]
    counts = [copied.count(unit) for unit in copied]
    child = dict(weights)
    for name in names:
        weight = weight_of(child, name)
        if weight.shape[0] != old:
            raise WeightsMismatch(
                f"{name!r} has {weight.shape[0]} units and {names[0]!r} has {old}: "
                "they cannot grow together"
            )
        child[f"{name}.weight"] = _rows(weight, copied, old, noise, rng)
        if f"{name}.bias" in child:
            child[f"{name}.bias"] = take(child[f"{name}.bias"], copied, 0)
    for name in through:
        child |= _passed(child, name, copied, old)
    for reader in into:
        name, place = (reader, None) if isinstance(reader, str) else reader
        weight = weight_of(child, name)
        child[f"{name}.weight"] = _columns(name, weight, place, copied, counts, old)
    return child


def _rows(
    weight: Array, copied: list[int], old: int, noise: float, rng: np.random.Generator
) -> Array:
    grown = take(weight, copied, 0)
    if noise and len(copied) > old:
        spread = noise * float(detached(weight).std())
        drawn = rng.normal(0, spread, size=(len(copied) - old, *weight.shape[1:]))
        grown[old:] += constant(drawn, like=grown)
    return grown


def _passed(weights: Weights, name: str, copied: list[int], old: int) -> dict[str, Array]:
    """Everything a per-channel layer keeps, grown; counters stay."""
    if f"{name}.running_mean" not in weights:  # a batch norm may be without affine weights
        fetch(weights, f"{name}.weight")
    grown = {}
    for key, tensor in weights.items():
        if not key.startswith(f"{name}.") or not len(tensor.shape):
            continue
        if tensor.shape[0] != old:
            raise WeightsMismatch(
                f"{key!r} has {tensor.shape[0]} channels and {old} pass through it"
            )
        grown[key] = take(tensor, copied, 0)
    return grown


def _columns(
    name: str, weight: Array, place: int | None, copied: list[int], counts: list[int], old: int
) -> Array:
    inputs = weight.shape[1]
    if place is None and inputs % old:
        raise WeightsMismatch(
            f"{name!r} has {inputs} inputs, which are no multiple of {old}",
            hint="where several layers are concatenated, say (name, place)",
        )
    each, first = (inputs // old, 0) if place is None else (1, place)
    last = first + each * old
    if last > inputs:
        raise WeightsMismatch(f"{name!r} has {inputs} inputs, no {old} from {first} on")
    places = [first + unit * each + at for unit in copied for at in range(each)]
    shares = constant([1 / count for count in counts for _ in range(each)], like=weight)
    grown = take(weight, places, 1) * along(shares, 1, len(weight.shape))
    before, after = detached(weight)[:, :first], detached(weight)[:, last:]
    return join([before, grown, after], 1)
