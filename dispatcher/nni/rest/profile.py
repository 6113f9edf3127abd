"""An experiment as NNI describes it: its profile, and its line in the list of all."""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from dispatcher.errors import DispatcherError
from dispatcher.experiments.standing import Standing
from dispatcher.nni.rest import endpoints
from dispatcher.nni.rows import WORDS, standing_of
from dispatcher.operations import table
from dispatcher.operations.operation import Context, perform
from dispatcher.queries import ExperimentListing

#: Keys that have the same name and meaning in NNI's files.
_SAME: Final = (
    "experimentName", "searchSpace", "trialCommand", "trialCodeDirectory", "trialConcurrency",
    "trialGpuNumber", "maxTrialNumber", "maxExperimentDuration", "maxTrialDuration", "debug",
    "logLevel", "experimentWorkingDirectory", "useAnnotation",
)  # fmt: skip

#: The platform whose trials run beside the head, by NNI's name and by ours.
_LOCAL: Final = "local"

#: NNI's words for one that has come to an end.
_OVER: Final = ("DONE", "STOPPED", "ERROR")

#: Experiments in one list.
_MOST_LISTED: Final = 1_000


def profile_of(folder: Path, seen: Standing, next_number: int) -> dict[str, Any]:
    """Return NNI's profile of an experiment.

    Args:
        folder: of the experiment.
        seen: how it stands.
        next_number: the number of the next trial.
    """
    settings = perform(table.EXPERIMENT_SHOW, Context(), experiment=str(folder)).settings
    summary = seen.experiment
    profile: dict[str, Any] = {
        "id": summary.id,
        "revision": 1,
        "execDuration": _active_s(seen),
        "logDir": summary.folder,
        "startTime": _ms(summary.created_at),
        "nextSequenceId": next_number,
        "maxSequenceId": next_number - 1,
        "params": _params(settings, summary.mode.value),
    }
    if is_over(seen):
        profile["endTime"] = _ms(summary.last_event_at)
    return profile


def is_over(seen: Standing) -> bool:
    """Whether nothing leads the experiment that could go on with it."""
    return standing_of(seen)[0] in _OVER


def _active_s(seen: Standing) -> int:
    if seen.head is not None:
        return int(seen.head.active_s)
    first, last = seen.experiment.created_at, seen.experiment.last_event_at
    return 0 if first is None or last is None else max(0, int(last - first))


def _params(settings: Mapping[str, Any], mode: str) -> dict[str, Any]:
    """Return settings under NNI's keys (v2 and later); limits of time in seconds, with their
    unit."""
    params = {name: settings[name] for name in _SAME if settings.get(name) is not None}
    for name in ("maxExperimentDuration", "maxTrialDuration"):
        if isinstance(params.get(name), int | float):
            params[name] = f"{params[name]:g}s"
    params.setdefault("searchSpace", {})
    params.setdefault("trialCommand", settings.get("trialFunction") or "")
    for name in ("tuner", "assessor"):
        algorithm = settings.get(name)
        if isinstance(algorithm, Mapping):
            kept = {key: value for key, value in algorithm.items() if value is not None}
            arguments = dict(kept.get("classArgs") or {})
            if name == "tuner":
                arguments.setdefault("optimize_mode", mode)
            params[name] = kept | {"classArgs": arguments}
    params["trainingService"] = {"platform": _platform_for_nni(_platform(settings))}
    return params


def _platform(settings: Mapping[str, Any]) -> str:
    services = settings.get("trainingService")
    first = services[0] if isinstance(services, list) and services else services
    name = first.get("platform") if isinstance(first, Mapping) else None
    return name if isinstance(name, str) else ""


def _platform_for_nni(platform: str) -> str:
    """Return the platform under which NNI's page shows outputs of trials, which it asks us for."""
    return platform if platform == _LOCAL else "remote"


def metadata_of(folder: Path, seen: Standing, port: int, prefix: str) -> dict[str, Any]:
    """Return NNI's line for an experiment that an endpoint shows.

    Args:
        folder: of the experiment.
        seen: how it stands.
        port: of the endpoint.
        prefix: its prefix; empty for none.
    """
    summary = seen.experiment
    last = summary.last_event_at if is_over(seen) else None
    here = summary.host == socket.gethostname()
    return {
        **_line(summary.id, summary.name, folder, summary.created_at, last),
        "status": standing_of(seen)[0],
        "pid": summary.pid if here else None,  # clients wait for it, and end it
        "port": port,
        "prefixUrl": prefix or None,
        "webuiUrl": [f"http://127.0.0.1:{port}{'/' + prefix if prefix else ''}"],
    }


def all_experiments(own: dict[str, Any], state: Path) -> list[dict[str, Any]]:
    """Return NNI's list of experiments, the oldest first.

    Args:
        own: the line of the one that is asked.
        state: the folder in which open endpoints are noted.
    """
    listed = perform(table.EXPERIMENT_LIST, Context()).experiments
    ports = {one.experiment: one for one in endpoints.open_endpoints(state)}
    lines = []
    for one in list(listed)[:_MOST_LISTED]:
        if one.id == own["id"]:
            continue
        line = _listed(one)
        endpoint = ports.get(one.id)
        if endpoint is not None:
            line |= {
                "port": endpoint.port,
                "webuiUrl": [endpoint.address] if not endpoint.prefix else [],
            }
        lines.append(line)
    return [own, *lines][::-1]


def _listed(one: ExperimentListing) -> dict[str, Any]:
    word = WORDS[one.status.value]
    last = one.last_event_at if word in _OVER else None
    line = _line(one.id, one.name, Path(one.folder), one.created_at, last)
    return line | {"status": word, "pid": None, "prefixUrl": None, "webuiUrl": []}


def _line(
    ident: str, name: str, folder: Path, created: float | None, last: float | None
) -> dict[str, Any]:
    return {
        "id": ident,
        "experimentName": name,
        "platform": _platform_in(folder),
        "startTime": _ms(created),
        "endTime": "N/A" if last is None else _ms(last),  # NNI's word while it runs
        "tag": [],
        "logDir": str(folder),
    }


def _platform_in(folder: Path) -> str:
    """Return the platform in an experiment's file; empty if it cannot be read."""
    try:
        return _platform(perform(table.EXPERIMENT_SHOW, Context(), experiment=str(folder)).settings)
    except DispatcherError:
        return ""


def _ms(seconds: float | None) -> int:
    return int(1000 * (time.time() if seconds is None else seconds))
