"""Checks of what machines of an experiment file need on this one's disk; no machine is asked."""

from __future__ import annotations

from collections.abc import Iterator

from dispatcher.experiment.platform_base import KeyProblem
from dispatcher.platforms.logins.checks import check_login, check_reference
from dispatcher.platforms.ssh.section import MachineConfig, SshServiceConfig
from tuners.plain_json import JsonPath


def check_machines(
    section: SshServiceConfig, at: JsonPath, read_roots: int
) -> Iterator[KeyProblem]:
    """Yield files and references of machines that are missing here, and lists that do not fit.

    Args:
        section: names the machines.
        at: its path.
        read_roots: how many folders there are to read from.
    """
    for index, machine in enumerate(section.machine_list):
        place = (*at, "machineList", index)
        yield from _check_machine(place, machine)
        yield from _check_read_roots(place, machine, read_roots)


def _check_machine(at: JsonPath, machine: MachineConfig) -> Iterator[KeyProblem]:
    for name, value in machine.environment.items():
        yield from check_reference((*at, "environment", name), value)
    yield from check_login(at, machine)


def _check_read_roots(at: JsonPath, machine: MachineConfig, wanted: int) -> Iterator[KeyProblem]:
    named = len(machine.weights_read_roots)
    if named and named != wanted:
        yield KeyProblem(
            (*at, "weightsReadRoots"),
            f"names {named} folders, and 'weightsReadRoots' of the experiment has {wanted}",
            "name the place of each of them on this machine, in the same order",
        )
