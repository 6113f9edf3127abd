"""Trackers that are fed with an experiment: TensorBoard, MLflow, Weights & Biases, and others'.

A sink is fed from the store, in a process that the engine does not know of: what a tracker is slow
to take, or does not take at all, costs the search nothing and is not lost. Nothing of the
experiment is changed here.

Read ``protocol.py`` first (what a tracker is given), then ``feeding.py`` (exactly once).
``follow.py`` reads, ``cursor.py`` remembers, ``serving.py`` is the process. A tracker is found by
the entry point group ``bequeath.sinks``, as platforms are by theirs; ``conformance.py`` tries one.
Callbacks of the experiment file are a sink without an entry point: ``callbacks``.
"""

FEEDS = "--serve"
"""On the command line of a head's sink process, which is known again by it."""
