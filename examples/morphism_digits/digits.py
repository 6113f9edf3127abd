"""scikit-learn's digits, 8 by 8 pixels and noisy: few to learn from, many to be judged by."""

from __future__ import annotations

import functools

import numpy as np

TRAIN = 400
NOISE = 0.5  # standard deviation; black is -0.3, white 0.7


@functools.cache
def load() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Returns ``train`` and ``validation`` as (pictures of shape (n, 64), labels)."""
    from sklearn.datasets import load_digits

    pictures, labels = load_digits(return_X_y=True)
    rng = np.random.default_rng(1797)
    order = rng.permutation(len(labels))
    pictures, labels = pictures[order] / 16 - 0.3, labels[order]
    judged = pictures[TRAIN:] + NOISE * rng.normal(size=pictures[TRAIN:].shape)  # once for all
    return {"train": (pictures[:TRAIN], labels[:TRAIN]), "validation": (judged, labels[TRAIN:])}


def batch(rng: np.random.Generator, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Some training pictures, drawn with replacement, each with fresh noise."""
    pictures, labels = load()["train"]
    chosen = rng.integers(len(labels), size=size)
    drawn = pictures[chosen]
    return drawn + NOISE * rng.normal(size=drawn.shape), labels[chosen]


def share_right(scores: np.ndarray, labels: np.ndarray) -> float:
    """The share of pictures whose highest score is that of their label."""
    return float((scores.argmax(1) == labels).mean())


def gradient(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Of the mean cross entropy of softmax, with respect to the scores."""
    shares = np.exp(scores - scores.max(1, keepdims=True))
    shares /= shares.sum(1, keepdims=True)
    shares[np.arange(len(labels)), labels] -= 1
    return shares / len(labels)
