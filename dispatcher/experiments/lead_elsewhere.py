"""Experiments whose folder several machines see, where no lock tells whether one of them leads."""

from __future__ import annotations

import socket

from dispatcher import queries
from dispatcher.errors import DispatcherError, UserError
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.folders.names import LEADER_NAME
from dispatcher.folders.status import ExperimentStatus, leader_of, status_of
from trial_runtime.mounts import network_type

#: How the lead of a head that has put its end on record stands.
_ENDED = (ExperimentStatus.COMPLETED, ExperimentStatus.STOPPED, ExperimentStatus.FAILED)


def why_lead_is_unknown(place: ExperimentFolder) -> str:
    """Say why nobody can tell from here whether an experiment is led; empty if one can.

    Locks of a file system on the network need not reach from one machine to another. A head that
    has put its end on record leads no more, wherever it ran.
    """
    host = leader_of(place.path).get("host")
    if host in (None, socket.gethostname()):
        return ""
    kind = network_type(place.path)
    if kind is None or _has_ended(place):
        return ""
    return (
        f"its last head ran on {host}, and no lock on {kind} tells from here whether it still does"
    )


def demand_known_lead(place: ExperimentFolder) -> None:
    """Raise ``UserError`` where the lock that keeps heads out can be had here and keeps none out:
    what changes an experiment without its head must not begin then."""
    unknown = why_lead_is_unknown(place)
    if unknown:
        raise UserError(
            f"{place.id} may be running: {unknown}",
            hint=f"run the command there; if that machine is no more, remove {LEADER_NAME!r} from "
            "the folder, which names it, and try again",
            where=str(place.path),
        )


def _has_ended(place: ExperimentFolder) -> bool:
    try:
        with queries.ExperimentReader.open(place.path) as reader:
            phase, epoch = reader.meta("phase"), reader.meta("phase_epoch")
    except DispatcherError:
        return False  # nobody knows
    return status_of(place.path, phase, epoch) in _ENDED
