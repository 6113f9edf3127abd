"""Checks of what machines of an experiment file need on this one's disk; no machine is asked."""

from __future__ import annotations

import os
from collections.abc import Iterator

from dispatcher.experiment.plain_json import JsonPath
from dispatcher.experiment.platform_base import KeyProblem
from dispatcher.experiment.references import resolve_reference
from dispatcher.platforms.ssh.section import LoginConfig, MachineConfig, SshServiceConfig


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
        yield from _check_reference((*at, "environment", name), value)
    logins: list[tuple[JsonPath, LoginConfig]] = [(at, machine)]
    if machine.jump is not None:
        logins.append(((*at, "jump"), machine.jump))
    for place, login in logins:
        for key, path in (("keyFile", login.key_file), ("knownHosts", login.known_hosts)):
            if path is not None and not os.path.isfile(path):
                yield KeyProblem((*place, key), f"does not exist: {path}")
        for key, secret in (("password", login.password), ("passphrase", login.passphrase)):
            if secret is not None:
                yield from _check_reference((*place, key), secret)


def _check_read_roots(at: JsonPath, machine: MachineConfig, wanted: int) -> Iterator[KeyProblem]:
    named = len(machine.weights_read_roots)
    if named and named != wanted:
        yield KeyProblem(
            (*at, "weightsReadRoots"),
            f"names {named} folders, and 'weightsReadRoots' of the experiment has {wanted}",
            "name the place of each of them on this machine, in the same order",
        )


def _check_reference(at: JsonPath, text: str) -> Iterator[KeyProblem]:
    try:
        resolve_reference(text)
    except ValueError as error:
        yield KeyProblem(at, str(error))
