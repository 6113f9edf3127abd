"""Schedulers asked for what an experiment without a head has left there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from dispatcher.errors import DispatcherError, ExperimentBusy, PermanentBackendError, StoreError
from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiment.plugged import word_of
from dispatcher.experiment.service import ServiceConfig
from dispatcher.experiments.lead_elsewhere import why_lead_is_unknown
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.folders.status import is_led
from dispatcher.platforms.allocations.allocation import allocation_name, service_label
from dispatcher.platforms.allocations.incarnation import note_swept, read_incarnation
from dispatcher.platforms.given import ServiceGiven
from dispatcher.platforms.registry import platform_of
from dispatcher.store.leadership import Leadership
from dispatcher.text_width import some_of

#: The address of a head that does not listen: nothing is started that would look for it.
_NOWHERE = ("127.0.0.1", 0)


#: Names of allocations in one sentence.
_NAMED = 10


class ClearedAllocations(NamedTuple):
    """The names of allocations that were cancelled, and why some schedulers could not be asked."""

    names: tuple[str, ...] = ()
    troubles: tuple[str, ...] = ()


def sweep(place: ExperimentFolder, config: ExperimentConfig) -> ClearedAllocations:
    """Cancel the allocations of an experiment that nobody leads, and let nobody lead it meanwhile;
    those of a copy of its folder are the experiment's. Where nobody can tell from here whether it
    is led, none is cancelled. Blocks.

    Args:
        place: the experiment's folder.
        config: the experiment.
    """
    if _is_copy_of_one_that_is_led(place, config):
        return ClearedAllocations()
    unknown = why_lead_is_unknown(place)
    if unknown:
        text = f"{unknown}; nothing was cancelled: run the command there"
        return ClearedAllocations((), tuple(_texts_of_left(place, config, text)))
    with contextlib.ExitStack() as stack:
        try:
            for folder in filter(None, (place.path, _original_of(place, config))):
                stack.enter_context(Leadership.keep_heads_out(folder))
        except ExperimentBusy as error:  # what is there is that head's, or is swept already
            return ClearedAllocations((), tuple(_texts_of_left(place, config, error.message)))
        except StoreError:
            pass  # where no lock can be had, no head begins either
        return _sweep_all(place, config)


def _texts_of_left(place: ExperimentFolder, config: ExperimentConfig, why: str) -> Iterator[str]:
    """Yield why nothing was cancelled, for each service that may have left something."""
    for each, mine in _by_service(config):
        if _recorded(place, mine):
            yield f"{word_of(each)}: {why}{_to_look_for(place, mine)}"


def _sweep_all(place: ExperimentFolder, config: ExperimentConfig) -> ClearedAllocations:
    """Ask the scheduler of each service, with the lead held."""
    names: list[str] = []
    troubles: list[str] = []
    for each, mine in _by_service(config):
        try:
            names += _sweep_of(place, each, mine)
        except DispatcherError as error:
            troubles.append(f"{word_of(each)}: {error.message}{_to_look_for(place, mine)}")
        except OSError as error:
            text = f"{word_of(each)}: {error.filename}: {error.strerror}"
            troubles.append(f"{text}{_to_look_for(place, mine)}")
    return ClearedAllocations(tuple(names), tuple(troubles))


def may_be_left(place: ExperimentFolder, config: ExperimentConfig) -> list[str]:
    """The names of allocations that a head which died may have left, by its records alone: no
    scheduler is asked.

    Args:
        place: the experiment's folder.
        config: the experiment.
    """
    if _is_copy_of_one_that_is_led(place, config):
        return []
    return [name for _, mine in _by_service(config) for name in _recorded(place, mine)]


def _is_copy_of_one_that_is_led(place: ExperimentFolder, config: ExperimentConfig) -> bool:
    """Whether a folder is a copy, as in a backup, of one that is where its file says. Both have
    the same id, and so the same names at schedulers."""
    original = _original_of(place, config)
    return original is not None and is_led(original)


def _original_of(place: ExperimentFolder, config: ExperimentConfig) -> Path | None:
    """The folder of which this one is a copy; None if it is none."""
    original = config.experiment_working_directory / place.id
    try:
        return None if original.samefile(place.path) else original
    except OSError:
        return None  # it has moved, or one of them is not there


def _by_service(config: ExperimentConfig) -> list[tuple[ServiceConfig, list[str]]]:
    workers: dict[int, list[str]] = {}
    for service, worker in config.workers:
        workers.setdefault(id(service), []).append(worker.name)
    return [(each, workers[id(each)]) for each in config.services if id(each) in workers]


def _recorded(place: ExperimentFolder, workers: list[str]) -> list[str]:
    """The names of the newest allocations of these workers of a service that may be there."""
    label = service_label(place.id, workers[0])
    newest = [(each, read_incarnation(place.path / "agents" / each)) for each in workers]
    return [
        allocation_name(label, worker, last.number)
        for worker, last in newest
        if last is not None and last.stage not in ("gone", "swept")
    ]


def _to_look_for(place: ExperimentFolder, workers: list[str]) -> str:
    """The names that are looked for by hand: nobody knows them when the folder is gone."""
    names = _recorded(place, workers)
    last = f", the last ones {some_of(names, _NAMED)}" if names else ""
    return f"; their names begin with '{service_label(place.id, workers[0])}-'{last}"


def _sweep_of(place: ExperimentFolder, service: ServiceConfig, workers: list[str]) -> list[str]:
    label = service_label(place.id, workers[0])
    given: ServiceGiven[Any] = ServiceGiven(
        label, place.id, service, place.path, _NOWHERE, _nothing, _nothing, lambda: True
    )
    swept = platform_of(service).sweep(given)
    for worker in workers:  # cancelled, or seen not to be there
        note_swept(place.path / "agents" / worker)
    return swept


def _nothing() -> NoReturn:
    raise PermanentBackendError("nothing is brought anywhere: no head leads the experiment")
