"""A larger kernel: a rim of zeros around the old one."""

from __future__ import annotations

from trial_runtime.errors import WeightsMismatch
from trial_runtime.morphism.arrays import Array, Weights, detached, weight_of, zeros


def larger_kernel(weights: Weights, layer: str, size: int) -> dict[str, Array]:
    """Returns weights in which a convolution has a larger kernel and the same function.

    Wei et al. (2016), kernel size morphing: the old kernel is padded by zeros on all
    sides. The padding of the input must grow by as much, which ``padding="same"`` does.

    Args:
        weights: the parent's.
        layer: name of a convolution.
        size: of its kernel afterwards, along each axis.

    Raises:
        WeightsMismatch: it is no convolution, or the sizes differ by an odd number or shrink.
    """
    weight = weight_of(weights, layer)
    rims = [size - old for old in weight.shape[2:]]
    if not rims:
        raise WeightsMismatch(f"{layer!r} is linear and has no kernel")
    if any(rim < 0 or rim % 2 for rim in rims):
        raise WeightsMismatch(
            f"{layer!r} has a kernel of {tuple(weight.shape[2:])}, which cannot stand in the "
            f"middle of one of {size}",
            hint="grow by an even number",
        )
    grown = zeros((*weight.shape[:2], *(size,) * len(rims)), like=weight)
    middle = tuple(slice(rim // 2, rim // 2 + old) for rim, old in zip(rims, weight.shape[2:]))
    place = (slice(None), slice(None), *middle)
    grown[place] = detached(weight)
    return {**weights, f"{layer}.weight": grown}
