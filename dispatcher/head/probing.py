"""Has services looked over before anything starts: by what their platforms find of them, and by a
probe where trials would run."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from dispatcher.channel import Router
from dispatcher.channel.folder_endpoint import FolderEndpoint
from dispatcher.channel.router import context_for
from dispatcher.errors import DispatcherError, PermanentBackendError
from dispatcher.experiment.config import ExperimentConfig
from dispatcher.findings import Finding, Severity
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.head.endpoints import line_of, open_endpoints, ways_of
from dispatcher.platforms.agents.identity import agent_routing_id
from dispatcher.platforms.allocations.section import AllocationService
from dispatcher.platforms.given import Given
from dispatcher.platforms.inspecting import Inspected, inspect_services
from dispatcher.platforms.registry import platform_of
from dispatcher.wiring.agents import worker_config
from dispatcher.wiring.archives import packer
from dispatcher.wiring.host_needs import host_needs
from dispatcher.wiring.places import Place, places
from dispatcher.wiring.weights import weights_root

#: So long the answer of a probe is waited for (seconds): a queue may take days.
LIMIT_S = 120.0


def look_over(config: ExperimentConfig) -> Iterator[Inspected]:
    """Ask the platform of each service what it finds, and have a place of those probed that have
    no problem so far. Blocks for minutes at most."""
    for one in inspect_services(config):
        bad = any(each.severity is Severity.PROBLEM for each in one.findings)
        probed = () if bad else tuple(_probe(config, one.service))
        yield one._replace(findings=(*one.findings, *probed))


def _probe(config: ExperimentConfig, service: object) -> Iterator[Finding]:
    place = next((each for each in places(config) if each.service is service), None)
    if place is None or not isinstance(service, AllocationService):
        return
    try:
        with ExitStack() as closing:
            try:
                given = closing.enter_context(_given(config, place))
            except PermanentBackendError as error:  # a head of this file may hold its port
                text = f"no place was looked over: {error.message}"
                yield Finding("probe", Severity.NOTE, text, error.hint)
                return
            yield from platform_of(place.service).probe(given, LIMIT_S)
    except DispatcherError as error:
        yield Finding("probe", Severity.PROBLEM, error.message, error.hint)
    except OSError as error:
        text = f"cannot be made: {error.filename}: {error.strerror}"
        yield Finding("probe", Severity.PROBLEM, text)


@contextmanager
def _given(config: ExperimentConfig, place: Place) -> Iterator[Given[Any]]:
    """Give what a platform gets of an experiment that is none yet; nothing of it is left. A router
    listens meanwhile where the head will."""
    with ExitStack() as closing:
        name = f"probe-{secrets.token_hex(3)}"
        folder = ExperimentFolder(config.experiment_working_directory / name)
        closing.callback(shutil.rmtree, folder.path, ignore_errors=True)
        folder.keys.mkdir(mode=0o700, parents=True)
        root = weights_root(config, folder)
        if isinstance(root, Path) and root.is_relative_to(folder.path):
            root.mkdir(exist_ok=True)  # as a head makes it
        context = context_for(1)
        closing.callback(context.term)
        router = Router(context)
        closing.callback(router.close)
        opened = open_endpoints(config, folder, router, "", [place])
        ways = ways_of(config, place)
        homes = line_of(place, folder.path).parents[1]
        if homes != folder.path / "agents":
            closing.callback(shutil.rmtree, homes, ignore_errors=True)
        if "folder" in ways:
            endpoint = FolderEndpoint(router)
            endpoint.add(line_of(place, folder.path), agent_routing_id(folder.path, place.worker))
            closing.callback(endpoint.close, remove=True)
            endpoint.open()
        agent = worker_config(config, place, folder, opened.workers[place.worker], 0, Path())
        given: Given[Any] = Given(
            place.worker,
            place.service,
            place.part,
            replace(agent, ways=opened.further.get(place.worker, ())),
            folder.path,
            opened.tcp,
            packer(config, folder),
            str,
            needs=host_needs(config, place),
        )
        yield given
