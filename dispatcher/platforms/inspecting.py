"""Services looked over before anything starts, by what their platforms find of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from dispatcher.errors import BackendError
from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiment.plugged import word_of
from dispatcher.experiment.services import Service
from dispatcher.findings import Finding, Severity
from dispatcher.platforms.registry import platform_of


class Inspected(NamedTuple):
    """One service, and what its platform finds of it: ``name`` is the word for the platform, with a
    number behind it where the file names it twice."""

    name: str
    findings: tuple[Finding, ...]
    service: Service


def inspect_services(config: ExperimentConfig) -> Iterator[Inspected]:
    """Ask the platform of each service what it finds; those that look at nothing are passed over.
    Blocks."""
    names: list[str] = []
    for service in config.services:
        word = word_of(service)
        names.append(word)
        many = names.count(word)
        try:
            findings = tuple(platform_of(service).inspect_for(service, config))
        except BackendError as error:
            where = "" if error.where in ("", word) else f"{error.where}: "
            text = f"{where}{error.message}"
            findings = (Finding("platform", Severity.PROBLEM, text, error.hint),)
        if findings:
            yield Inspected(word if many == 1 else f"{word}-{many}", findings, service)
