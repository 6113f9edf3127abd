"""How an experiment stands: by its store, and by its head beside it, if one answers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import msgspec

from dispatcher import queries
from dispatcher.control.snapshot import HeadSnapshot
from dispatcher.queries import ExperimentStatus, ExperimentSummary
from dispatcher.sinks.standing import SinkStanding, standings


class Standing(msgspec.Struct, frozen=True):
    """The record that everything shows which shows an experiment as a whole.

    ``head`` is None while none answers; ``sinks`` are the trackers that are, or were, fed with it.
    """

    experiment: ExperimentSummary
    head: HeadSnapshot | None
    sinks: tuple[SinkStanding, ...] = ()


def standing(folder: Path, ask: Callable[[Path], HeadSnapshot | None] | None = None) -> Standing:
    """Look at an experiment: its store first, then its head, which knows the limit of time.

    Args:
        folder: of the experiment.
        ask: asks its head; None: over a connection for this once.
    """
    from dispatcher.experiments.why import asked

    with queries.ExperimentReader.open(folder) as reader:
        summary = queries.experiment_summary(reader)
        sinks = standings(folder, reader)
    running = summary.status is ExperimentStatus.RUNNING
    head = (ask or asked)(folder) if running else None
    if head is not None:
        summary = dataclasses.replace(summary, time_left_s=left_by(head, summary.rate))
    return Standing(summary, head, sinks)


def left_by(head: HeadSnapshot, rate: float | None) -> float | None:
    """Return the seconds until the first limit that a head goes by, at a rate per second."""
    limit = head.max_trials
    duration_s = head.max_duration_s
    return queries.time_left(
        rate,
        trials=None if limit is None else limit - head.ended,
        duration_s=None if duration_s is None else duration_s - head.active_s,
        stands=head.counts.stands,
    )
