"""Networks whose depth, widths and kernels mutate, and how a child inherits its parent's weights.

Each block ``{"id", "width", "kernel"}`` is a convolution and a ReLU. The ids name the tensors, so
that a block keeps its weights when others come or go beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

CLASSES = 10


class Network(nn.Module):
    """The blocks, the first one's pictures halved; the mean over quarters; a linear layer."""

    def __init__(self, blocks: Sequence[Mapping[str, Any]]) -> None:
        super().__init__()
        self.blocks = nn.ModuleDict()
        width = 1
        for block in blocks:
            convolution = nn.Conv2d(width, block["width"], block["kernel"], padding="same")
            nn.init.kaiming_normal_(convolution.weight, nonlinearity="relu")
            self.blocks[str(block["id"])] = convolution
            width = block["width"]
        self.head = nn.Linear(4 * width, CLASSES)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        signal = images
        for place, block in enumerate(self.blocks.values()):
            signal = torch.relu(block(signal))
            if place == 0:
                signal = nn.functional.max_pool2d(signal, 2)
        pooled = nn.functional.adaptive_avg_pool2d(signal, 2)
        # The channel last, so that those of a narrower parent are the first in each quarter.
        return self.head(pooled.movedim(1, -1).flatten(1))


@torch.no_grad()
def inherit(child: Network, parent: Mapping[str, torch.Tensor]) -> None:
    """Copies a parent's weights wherever shapes allow.

    Where the child is larger, so that it computes the same function as its parent: new channels
    are not listened to yet, larger kernels are zero around the old ones, and a new block passes
    its input on (Net2Net, Chen et al. 2016, section 2). Where it is smaller, it keeps a part.
    """
    for name, block in child.blocks.items():
        weight, bias = parent.get(f"blocks.{name}.weight"), parent.get(f"blocks.{name}.bias")
        if weight is None or bias is None:
            _pass_on(block)
        else:
            _overlap(block.weight, weight)
            block.bias[: len(bias)] = bias[: len(block.bias)]
    weight = parent["head.weight"]
    before = weight.unflatten(1, (4, -1))
    after = torch.zeros_like(child.head.weight).unflatten(1, (4, -1))
    both = min(before.shape[2], after.shape[2])
    after[:, :, :both] = before[:, :, :both]
    child.head.weight.copy_(after.flatten(1))
    child.head.bias.copy_(parent["head.bias"])


def _overlap(child: torch.Tensor, parent: torch.Tensor) -> None:
    out, into = min(len(child), len(parent)), min(child.shape[1], parent.shape[1])
    ours, theirs = child.shape[2], parent.shape[2]
    both = min(ours, theirs)
    a, b = (ours - both) // 2, (theirs - both) // 2
    child[:out] = 0
    child[:out, :into, a : a + both, a : a + both] = parent[:out, :into, b : b + both, b : b + both]


def _pass_on(block: nn.Conv2d) -> None:
    same = min(block.in_channels, block.out_channels)
    block.weight[:same] = 0
    block.bias[:same] = 0
    middle = block.kernel_size[0] // 2
    for channel in range(same):
        block.weight[channel, channel, middle, middle] = 1
