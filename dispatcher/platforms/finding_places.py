"""The keys of the experiment file that findings are about, and the places that they have in it."""

from __future__ import annotations

from collections.abc import Iterable

from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiment.fields import Section
from dispatcher.experiment.file_places import FilePlaces
from dispatcher.experiment.keys import file_key
from dispatcher.experiment.services import Service
from dispatcher.findings import Finding, Severity
from tuners.plain_json import JsonPath

#: The keys that findings of a topic are about, where they do not say it themselves.
KEYS = {
    "head": ("headAddress", "jump", "channel"),
    "ways": ("headAddress", "jump", "channel"),
    "weights": ("weightsRoot", "weightsReadRoots"),
    "code": ("bringCode", "trialCodeDirectory"),
    "disk": ("workFolder", "sharedFolder"),
    "folders": ("sharedFolder",),
    "python": ("python", "trialPython", "image"),
    "modules": ("python", "trialPython", "image", "bringCode"),
    "prolog": ("prolog",),
    "cores": ("trialCpuNumber",),
    "gpus": ("gpuIndices", "trialGpuNumber", "trialResources"),
    "login": ("host",),
    "platform": ("address", "context", "kubeconfig", "login"),
    "cluster": ("address", "context", "kubeconfig", "login"),
    "rights": ("namespace", "context"),
    "volumes": ("volumes",),
    "probe": ("sharedFolder", "python", "image"),
}


def keys_in(text: str, table: Iterable[tuple[str, str]]) -> tuple[JsonPath, ...]:
    """Return the keys that a service's own words are about, the first of a table first.

    Args:
        text: its words.
        table: pairs of a word in lower case, and a key.
    """
    lower = text.lower()
    return tuple(dict.fromkeys((key,) for word, key in table if word in lower))


def place_of(finding: Finding, places: FilePlaces, at: JsonPath) -> str:
    """Return ``file:line:column`` of what a finding is about; empty where nothing is wrong.

    Args:
        finding: of a service, or of one of its machines.
        places: of the file's keys.
        at: the path of that section.
    """
    if finding.severity is Severity.OK:
        return ""
    keys = finding.keys or tuple((key,) for key in KEYS.get(finding.topic, ()))
    if not keys and finding.severity is Severity.NOTE:
        return ""
    return places.of(at, keys)


def path_of(config: ExperimentConfig, service: Service, part: Section | None = None) -> JsonPath:
    """The path of a service's section, or of one worker's in it.

    Args:
        config: the file.
        service: one of its services.
        part: the section of a worker; None, or the service itself, for the service.
    """
    several = isinstance(config.training_service, tuple)
    index = next(n for n, each in enumerate(config.services) if each is service)
    at: JsonPath = ("trainingService", index) if several else ("trainingService",)
    for name in type(service).model_fields:
        listed = getattr(service, name)
        for number, each in enumerate(listed if isinstance(listed, tuple) else ()):
            if each is part:
                return (*at, file_key(type(service), name), number)
    return at
