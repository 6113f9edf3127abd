"""The task: digits that were turned, shifted and made noisy, learnt from few examples.

scikit-learn's digits are 1797 pictures of 8 by 8 pixels. A plain split of them is solved within
seconds; turned by up to 45 degrees, shifted by up to a pixel and with noise added they need
hundreds of passes, each of which sees every picture distorted anew.
"""

from __future__ import annotations

import functools
import math

import torch
from torch.nn import functional

TRAIN, VALIDATION = 400, 900  # the remaining 497 are the test set
COPIES = 2  # distorted copies of each validation and test picture, the same for everybody
TURN_DEGREES, SHIFT, NOISE = 45.0, 0.25, 0.2


def distort(images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Returns each picture turned, shifted and with noise added. Shape (n, 1, 8, 8)."""
    n = len(images)
    angle = (torch.rand(n, generator=generator) * 2 - 1) * math.radians(TURN_DEGREES)
    theta = torch.zeros(n, 2, 3)
    theta[:, 0, 0] = theta[:, 1, 1] = angle.cos()
    theta[:, 0, 1], theta[:, 1, 0] = -angle.sin(), angle.sin()
    theta[:, :, 2] = (torch.rand(n, 2, generator=generator) * 2 - 1) * SHIFT
    grid = functional.affine_grid(theta, list(images.shape), align_corners=False)
    moved = functional.grid_sample(images, grid, align_corners=False)
    return moved + NOISE * torch.randn(moved.shape, generator=generator)


@functools.cache
def load() -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """Returns ``train`` (undistorted), ``validation`` and ``test`` as (pictures, labels)."""
    from sklearn.datasets import load_digits

    pictures, labels = load_digits(return_X_y=True)
    images = torch.tensor(pictures, dtype=torch.float32).reshape(-1, 1, 8, 8) / 16
    targets = torch.tensor(labels)
    generator = torch.Generator().manual_seed(1797)
    order = torch.randperm(len(images), generator=generator)
    parts = order.split([TRAIN, VALIDATION, len(images) - TRAIN - VALIDATION])
    train, validation, test = ((images[part], targets[part]) for part in parts)

    def fixed(pair: tuple[torch.Tensor, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        copies = [distort(pair[0], generator) for _ in range(COPIES)]
        return torch.cat(copies), pair[1].repeat(COPIES)

    return {"train": train, "validation": fixed(validation), "test": fixed(test)}
