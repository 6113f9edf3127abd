"""Answers about tensors of a trial's weights; their rules are those of the module ``answers``."""

from __future__ import annotations

from dispatcher.experiments.tensor_origins import TensorOrigin
from dispatcher.operations.answers import OperationAnswer


class TensorsOfKind(OperationAnswer, frozen=True):
    """Tensors that have something in common, and their bytes."""

    tensors: int
    bytes: int


class TensorGroup(OperationAnswer, frozen=True):
    """Tensors of one part of a model: by what became of them, and by the trial that wrote them."""

    name: str
    tensors: int
    bytes: int
    changes: dict[str, TensorsOfKind]
    origins: tuple[int, ...]


class TensorAncestor(OperationAnswer, frozen=True):
    """The tensors whose bytes one trial has written first; ``trial`` is null where it is not known,
    ``generations`` where the line of manifests does not reach it."""

    trial: int | None
    generations: int | None
    tensors: int
    bytes: int


class TrialTensors(OperationAnswer, frozen=True):
    """The tensors of a trial's weights against its parent's, and who wrote them first. With ``why``
    nothing is known, for that reason. Lists are bounded; ``count`` and ``bytes`` are of all."""

    experiment: str
    trial: int
    parent: int | None
    why: str
    count: int
    bytes: int
    changes: dict[str, TensorsOfKind]
    ancestors: list[TensorAncestor]
    groups: list[TensorGroup]
    tensors: list[TensorOrigin]
    gone: tuple[str, ...]
    notes: tuple[str, ...]
