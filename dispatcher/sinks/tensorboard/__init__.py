"""The sink ``tensorboard``: files for TensorBoard, written by hand."""

from dispatcher.sinks.tensorboard.kind import TensorBoardKind

TENSORBOARD = TensorBoardKind()
"""What the entry point ``tensorboard`` names."""
