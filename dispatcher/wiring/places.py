"""Translates the experiment file into places where trials run; decides nothing."""

from __future__ import annotations

import os
from typing import NamedTuple

from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiment.fields import Section
from dispatcher.experiment.references import references_in, secret_values
from dispatcher.experiment.services import Service


class Place(NamedTuple):
    """A worker's name and its sections of the file; ``part`` is that of this worker alone,
    ``address`` the one of this machine that the file names for it."""

    worker: str
    service: Service
    slots: int
    part: Section
    address: str | None = None


def places(config: ExperimentConfig) -> list[Place]:
    """The places where trials run: the same file always gives the same names."""
    return [
        Place(worker.name, service, worker.slots, worker.part, worker.address)
        for service, worker in config.workers
    ]


def secrets_of_services(config: ExperimentConfig) -> list[str]:
    """The values of references in the sections of services, to be kept out of logs; references
    that lead nowhere are passed over. Reads files."""
    named = [text for service in config.services for text in references_in(service.model_dump())]
    return secret_values(dict(zip(named, named, strict=True)), os.environ)
