"""Turns the return value of ``generate_parameters`` into a proposal that the head accepts.

Runs in the request's own thread, so that large parameters delay no other request.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import msgspec

from dispatcher.core.events import Proposed
from dispatcher.core.ids import TrialId
from dispatcher.core.own_needs import BadNeeds, read_needs
from dispatcher.core.resources import A_SLOT, Needs
from dispatcher.core.stores import PINS_KEY, BadPins, read_pins, read_version
from dispatcher.tuner_host.config import TunerHostConfig
from dispatcher.tuner_host.plain_values import NotJson, plain
from trial_runtime.errors import PathError

_encoder = msgspec.json.Encoder()

#: Characters of a name that fit in any encoding; longer ones are looked at closely.
_SURELY_SHORT = 63


class Nonsense(Exception):
    """Raised if a return value cannot be parameters; ``str()`` explains why, in one line."""


@dataclass(frozen=True, slots=True)
class ProposalRules:
    """Rules for parameters: the places where weights may lie, keys with a meaning, the size."""

    weights_root: str
    save_key: str = "save_path"
    restore_key: str = "restore_path"
    read_roots: tuple[str, ...] = ()
    max_bytes: int = 1 << 20
    needs_key: str = "_needs"
    needs: Needs = A_SLOT  # of a trial whose parameters name none
    any_keys: bool = False  # take numbers as keys of objects, as the texts that JSON writes

    @classmethod
    def of(cls, config: TunerHostConfig, *, any_keys: bool) -> Self:
        """Return the rules of an experiment."""
        return cls(
            config.weights_root,
            config.save_key,
            config.restore_key,
            config.weights_read_roots,
            config.max_parameters_bytes,
            config.needs_key,
            config.needs,
            any_keys,
        )


def propose(trial: int, returned: Any, rules: ProposalRules) -> Proposed:
    """Make the proposal of one trial.

    Args:
        trial: the request's number.
        returned: the tuner's return value, which is not changed.
        rules: where its paths may lead, how large it may be.

    Raises:
        Nonsense: it is not JSON, too large, or a path leads out of the weights root.
    """
    if returned is None:
        raise Nonsense("parameters: None; does generate_parameters lack a return?")
    try:
        value = plain(returned, "parameters", any_keys=rules.any_keys)
        value, needs = _without_needs(value, rules)
        encoded = _encoder.encode(value)
    except NotJson as error:
        raise Nonsense(str(error)) from None
    if len(encoded) > rules.max_bytes:
        raise Nonsense(
            f"parameters: {len(encoded):,} bytes of JSON, and {rules.max_bytes:,} are allowed; "
            "keep large things in files and pass their paths"
        )
    save = restore = None
    reads: tuple[tuple[str, int], ...] = ()
    if isinstance(value, Mapping):
        save = _canonical(value, rules.save_key, rules, ())
        try:
            reads = read_pins(value)
        except BadPins as error:
            raise Nonsense(f"parameters.{PINS_KEY}: {error}") from None
        restore, reads = _restored(value, reads, rules)
    return Proposed(TrialId(trial), encoded.decode(), save, restore, needs, reads)


def seen_by_trial(returned: Any, rules: ProposalRules) -> Any:
    """The return value without the needs that may stand beside the parameters.

    Without needs it is the very object: tuners recognise it in a result.
    """
    if not isinstance(returned, Mapping) or rules.needs_key not in returned:
        return returned
    return {key: value for key, value in returned.items() if key != rules.needs_key}


def _without_needs(value: Any, rules: ProposalRules) -> tuple[Any, Needs | None]:
    """The parameters as the trial sees them, and its needs if the tuner named any."""
    if not isinstance(value, Mapping) or rules.needs_key not in value:
        return value, None
    rest = dict(value)
    try:
        return rest, read_needs(rest.pop(rules.needs_key), rules.needs)
    except BadNeeds as error:
        raise Nonsense(f"parameters.{rules.needs_key}: {error}") from None


def _restored(
    value: Mapping[str, Any], reads: tuple[tuple[str, int], ...], rules: ProposalRules
) -> tuple[str | None, tuple[tuple[str, int], ...]]:
    """The weights that a trial starts from, and the versions of shared stores that it reads.

    The former are among the latter if the trial starts from a version of a shared store.
    """
    restore = value.get(rules.restore_key) if rules.restore_key else None
    if isinstance(restore, str):
        try:
            version = read_version(restore)
        except BadPins as error:
            raise Nonsense(f"parameters.{rules.restore_key}: {error}") from None
        if version is not None:
            return restore, tuple(dict.fromkeys((*reads, version)))
    return _canonical(value, rules.restore_key, rules, rules.read_roots), reads


def _canonical(
    value: Mapping[str, Any], key: str, rules: ProposalRules, read_roots: tuple[str, ...]
) -> str | None:
    path = value.get(key)
    if path is None:
        return None
    if not isinstance(path, str):
        raise Nonsense(f"parameters.{key}: {path!r} is not a path; it must be text")
    if _lies_plainly_below(rules.weights_root, path):
        return path
    from trial_runtime.weights.storage.paths import as_declared, resolve_in_root

    try:
        resolved = resolve_in_root(rules.weights_root, path, read_roots=read_roots)
        return as_declared(resolved, read_roots)
    except PathError as error:
        place = f"{error.where}: " if error.where else ""
        advice = f"; {error.hint}" if error.hint else ""
        text = f"parameters.{key}: {place}{error.message}{advice}"
        raise Nonsense(" ".join(text.split())) from None


def _lies_plainly_below(root: str, path: str) -> bool:
    """Whether a path is canonical as it is spelled.

    That is the usual case, and costs a few system calls; resolving every part of the root, twice,
    costs ten times as many.
    """
    if path.startswith("."):
        return False  # it may be a folder of ours, which no trial may claim
    here = root
    for part in path.split("/"):
        if part in ("", ".", "..") or "\0" in part or len(part) > _SURELY_SHORT:
            return False
        here = f"{here}/{part}"
        try:
            status = os.lstat(here)
        except FileNotFoundError:
            return True  # nothing can be below it
        except OSError:
            return False
        if stat.S_ISLNK(status.st_mode):
            return False
    return True
