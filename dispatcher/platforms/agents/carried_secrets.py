"""References of trials' environments on another machine: resolved here, where they mean something.

Secrets reach an agent there as variables of its own, so that none lies in a file; the environment
of its trials names those by reference, which is also how it knows what to mask in their output.
"""

from __future__ import annotations

from collections.abc import Mapping

from trial_runtime.agent.runners.environment import is_reference, resolve_references

#: The beginning of the names of variables that carry what the whole experiment's trials get.
SECRET = "BEQUEATH_SECRET_"  # noqa: S105 - a beginning of names


def variables_of_agent(wanted: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """The variables of an agent on another machine.

    Args:
        wanted: the environment of all trials.
        own: what that machine has beside it.

    Raises:
        LookupError: a reference leads nowhere.
    """
    plain = {key: value.removeprefix("literal:") for key, value in own.items()}
    secrets = {f"{SECRET}{key}": value for key, value in resolve_references(dict(wanted)).items()}
    return {**plain, **resolve_references(dict(own)), **secrets}


def environment_there(wanted: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """The environment of trials, as an agent with those variables reads it.

    Args:
        wanted: the environment of all trials.
        own: what that machine has beside it.
    """
    named = {key: f"env:{key}" for key, value in own.items() if is_reference(value)}
    carried = {
        key: f"env:{SECRET}{key}" if is_reference(value) else value for key, value in wanted.items()
    }
    return {**named, **carried}
