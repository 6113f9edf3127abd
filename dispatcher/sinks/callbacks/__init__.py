"""Callbacks of an experiment: a sink that calls functions and commands instead of a tracker."""

from dispatcher.sinks.callbacks.kind import CallbacksKind

CALLBACKS = CallbacksKind()
"""The kind that the section ``callbacks`` of an experiment file stands for."""
