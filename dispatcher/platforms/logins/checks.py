"""Checks of what a login needs on this machine's disk; no machine is asked."""

from __future__ import annotations

import os
from collections.abc import Iterator

from dispatcher.experiment.platform_base import KeyProblem
from dispatcher.experiment.references import resolve_reference
from dispatcher.platforms.logins.section import LoginConfig, ReachedConfig
from tuners.plain_json import JsonPath


def check_login(at: JsonPath, machine: ReachedConfig) -> Iterator[KeyProblem]:
    """Yield files and references of a login that are missing here, those of its jump included.

    Args:
        at: its path.
        machine: to log in to.
    """
    logins: list[tuple[JsonPath, LoginConfig]] = [(at, machine)]
    if machine.jump is not None:
        logins.append(((*at, "jump"), machine.jump))
    for place, login in logins:
        for key, path in (("keyFile", login.key_file), ("knownHosts", login.known_hosts)):
            if path is not None and not os.path.isfile(path):
                yield KeyProblem((*place, key), f"does not exist: {path}")
        for key, secret in (("password", login.password), ("passphrase", login.passphrase)):
            if secret is not None:
                yield from check_reference((*place, key), secret)


def check_reference(at: JsonPath, text: str) -> Iterator[KeyProblem]:
    """Yield that a reference leads nowhere.

    Args:
        at: its path.
        text: the reference.
    """
    try:
        resolve_reference(text)
    except ValueError as error:
        yield KeyProblem(at, str(error))
