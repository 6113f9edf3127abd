"""Net2Deeper: one more layer, which passes its input on."""

from __future__ import annotations

from typing import Any

from trial_runtime.errors import WeightsMismatch
from trial_runtime.morphism.arrays import (
    Array,
    Weights,
    constant,
    is_torch,
    must_be_free,
    weight_of,
    zeros,
)


def deeper(
    weights: Weights,
    layer: str,
    *,
    after: str,
    kernel: int | None = None,
    bias: bool | None = None,
    norm: str | None = None,
    mean: Any = None,
    variance: Any = None,
    eps: float = 1e-5,
) -> dict[str, Array]:
    """Returns weights with one more layer that is the identity, behind another one.

    Chen et al. (2016), Net2DeeperNet. With an activation ``f`` behind it the network keeps its
    function if ``f(f(x)) = f(x)``: ReLU does, GELU, sigmoid and tanh do not (leave the activation
    out there). A convolution must keep the size of its input (``padding="same"``).

    Args:
        weights: the parent's.
        layer: name of the new layer, of the same kind, width and type as ``after``.
        after: name of the layer whose output it gets.
        kernel: odd size of a convolution; None: that of ``after``.
        bias: whether it has a bias (of zeros); None: as ``after`` has.
        norm: name of a batch norm behind it, whose scale and shift undo its normalisation.
        mean: per channel, of what the batch norm will see; 0 if not known. Evaluation keeps the
            function whatever it is; training, which normalises by each batch, only as far as
            mean and variance are those of the data.
        variance: likewise; 1 if not known.
        eps: that of the batch norm.

    Raises:
        WeightsMismatch: there is no such ``after``, a name is taken, or the kernel is even.
    """
    model = weight_of(weights, after)
    width, spatial = model.shape[0], len(model.shape) - 2
    sizes = tuple(model.shape[2:]) if kernel is None else (kernel,) * spatial
    if any(size % 2 == 0 for size in sizes):
        raise WeightsMismatch(f"an identity needs a middle; a kernel of {sizes} has none")
    child = dict(weights)
    weight = zeros((width, width, *sizes), like=model)
    middle = tuple(size // 2 for size in sizes)
    for unit in range(width):
        place = (unit, unit, *middle)
        weight[place] = 1
    must_be_free(weights, f"{layer}.weight", f"{layer}.bias")
    child[f"{layer}.weight"] = weight
    if f"{after}.bias" in weights if bias is None else bias:
        child[f"{layer}.bias"] = zeros((width,), like=model)
    if norm is not None:
        child |= _undone_norm(weights, norm, model, mean, variance, eps)
    return child


def _undone_norm(
    weights: Weights, norm: str, model: Array, mean: Any, variance: Any, eps: float
) -> dict[str, Array]:
    """A batch norm with ``(x - mean) / sqrt(variance + eps) * scale + shift = x``."""
    import numpy as np

    width = model.shape[0]
    means = zeros((width,), like=model) + constant(0.0 if mean is None else mean, like=model)
    spread = zeros((width,), like=model) + constant(
        1.0 if variance is None else variance, like=model
    )
    fresh = {
        f"{norm}.weight": (spread + eps) ** 0.5,
        f"{norm}.bias": means + 0,  # each its own memory: batch norms change them in place
        f"{norm}.running_mean": means,
        f"{norm}.running_var": spread,
    }
    if is_torch(model):
        import torch

        fresh[f"{norm}.num_batches_tracked"] = torch.tensor(0, device=model.device)
    else:
        fresh[f"{norm}.num_batches_tracked"] = np.zeros((), dtype=np.int64)
    must_be_free(weights, *fresh)
    return fresh
