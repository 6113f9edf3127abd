"""Gradients of a controller's computation: each step notes how to go back over it.

No more than a controller needs: vectors, matrices that multiply them, a handful of functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.float64]


class Node:
    """A value, and the gradient of the loss with respect to it once :meth:`Tape.backward` ran."""

    __slots__ = ("grad", "value")

    def __init__(self, value: Array) -> None:
        self.value = value
        self.grad = np.zeros_like(value)


class Tape:
    """Steps in the order in which they were made. For one loss; not to be used from two threads."""

    def __init__(self) -> None:
        self._steps: list[Callable[[], None]] = []

    def leaf(self, value: Array) -> Node:
        """Something that the loss depends on: a parameter."""
        return Node(np.asarray(value, dtype=np.float64))

    def backward(self, loss: Node) -> None:
        """Work out the gradients of all nodes from that of a single number."""
        loss.grad = np.ones_like(loss.value)
        for step in reversed(self._steps):
            step()

    def _made(self, value: Array, back: Callable[[Node], None]) -> Node:
        node = Node(np.asarray(value, dtype=np.float64))
        self._steps.append(lambda: back(node))
        return node

    def times(self, matrix: Node, vector: Node) -> Node:
        """A matrix times a vector."""

        def back(made: Node) -> None:
            matrix.grad += np.outer(made.grad, vector.value)
            vector.grad += matrix.value.T @ made.grad

        return self._made(matrix.value @ vector.value, back)

    def add(self, one: Node, other: Node) -> Node:
        """The sum, element by element."""

        def back(made: Node) -> None:
            one.grad += made.grad
            other.grad += made.grad

        return self._made(one.value + other.value, back)

    def multiply(self, one: Node, other: Node) -> Node:
        """The product, element by element."""

        def back(made: Node) -> None:
            one.grad += made.grad * other.value
            other.grad += made.grad * one.value

        return self._made(one.value * other.value, back)

    def scale(self, one: Node, factor: float) -> Node:
        """Multiply by a number that is none of the parameters."""

        def back(made: Node) -> None:
            one.grad += factor * made.grad

        return self._made(factor * one.value, back)

    def dot(self, one: Node, other: Node) -> Node:
        """The inner product of two vectors."""
        return self.total(self.multiply(one, other))

    def total(self, one: Node) -> Node:
        """The sum of all elements."""

        def back(made: Node) -> None:
            one.grad += made.grad

        return self._made(one.value.sum(), back)

    def tanh(self, one: Node) -> Node:
        """Hyperbolic tangent."""
        value = np.tanh(one.value)

        def back(made: Node) -> None:
            one.grad += made.grad * (1 - value * value)

        return self._made(value, back)

    def sigmoid(self, one: Node) -> Node:
        """Logistic function."""
        value = 1 / (1 + np.exp(-one.value))

        def back(made: Node) -> None:
            one.grad += made.grad * value * (1 - value)

        return self._made(value, back)

    def log(self, one: Node) -> Node:
        """Natural logarithm."""

        def back(made: Node) -> None:
            one.grad += made.grad / one.value

        return self._made(np.log(one.value), back)

    def one_minus(self, one: Node) -> Node:
        """1 minus the value."""

        def back(made: Node) -> None:
            one.grad -= made.grad

        return self._made(1 - one.value, back)

    def log_softmax(self, one: Node) -> Node:
        """Logarithms of the probabilities that logits stand for."""
        shifted = one.value - one.value.max()
        value = shifted - np.log(np.exp(shifted).sum())

        def back(made: Node) -> None:
            one.grad += made.grad - np.exp(value) * made.grad.sum()

        return self._made(value, back)

    def at(self, one: Node, index: int | slice) -> Node:
        """An element of a vector, a row of a matrix, or a part of either."""

        def back(made: Node) -> None:
            one.grad[index] += made.grad

        return self._made(one.value[index], back)

    def joined(self, parts: Sequence[Node]) -> Node:
        """Vectors, or numbers, one after another."""
        shapes = [np.atleast_1d(part.value) for part in parts]
        ends = np.cumsum([len(shape) for shape in shapes])

        def back(made: Node) -> None:
            for part, end, shape in zip(parts, ends, shapes, strict=True):
                piece = made.grad[end - len(shape) : end]
                part.grad = part.grad + piece.reshape(part.value.shape)

        return self._made(np.concatenate(shapes), back)
