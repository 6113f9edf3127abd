"""Options of ``sbatch`` that a file may name beside our keys, and those that are ours. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import PlainValidator, WithJsonSchema

#: Options that we write ourselves, and what says the same in the file.
_OURS = {
    "account": "'account'",
    "chdir": "",
    "comment": "",
    "constraint": "'constraint'",
    "cpus-per-task": "'cpus'",
    "error": "",
    "gres": "'gres'",
    "input": "",
    "job-name": "'experimentName'",
    "mem": "'memory'",
    "open-mode": "",
    "output": "",
    "parsable": "",
    "partition": "'partition'",
    "qos": "'qos'",
    "quiet": "",
    "reservation": "'reservation'",
    "time": "'wallTime'",
    "verbose": "",
}

#: Options with which an allocation would not be what its head takes it for.
_REFUSED = {
    "array": "each allocation is a job of its own",
    "clusters": "the cluster is the one that 'sbatch' reaches by itself",
    "export": "variables are named by 'environment'",
    "export-file": "variables are named by 'environment'",
    "get-user-env": "a job has the environment of a login",
    "help": "nothing would be started",
    "hold": "it would wait for ever",
    "no-requeue": "no job of ours is started twice, in any case",
    "nodes": "one job is one node here",
    "requeue": "Slurm would start an agent a second time; bequeath asks for another place itself",
    "test-only": "nothing would be started",
    "usage": "nothing would be started",
    "version": "nothing would be started",
    "wait": "it would block",
    "wrap": "a job runs our agent",
}

_NAME = re.compile(r"[a-z][a-z0-9-]*")


def _read_options(value: object) -> dict[str, str | bool]:
    if not isinstance(value, Mapping):
        raise ValueError(
            f"must be names with their values, as in {{exclusive: true}}, not {value!r}"
        )
    return {_name(name): _text(str(name), each) for name, each in value.items()}


def _name(name: object) -> str:
    plain = name.removeprefix("--") if isinstance(name, str) else ""
    if not _NAME.fullmatch(plain):
        raise ValueError(f"has the name {name!r}; write long names of sbatch, such as 'exclusive'")
    meant = _meant(plain)
    if meant in _OURS:
        instead = f"write {_OURS[meant]}" if _OURS[meant] else "bequeath writes it itself"
        raise ValueError(f"has {plain!r}: {instead}")
    if meant in _REFUSED:
        raise ValueError(f"has {plain!r}: {_REFUSED[meant]}")
    return plain


def _meant(plain: str) -> str:
    """The option that sbatch takes a name for: it reads the beginning of a long name as that."""
    if plain in _OURS or plain in _REFUSED or len(plain) == 1:
        return plain
    begun = (name for name in (*_OURS, *_REFUSED) if name.startswith(plain))
    return next(begun, plain)


def _text(name: str, value: object) -> str | bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str) and value.isprintable() and value:
        return value
    raise ValueError(f"has {name!r}, which must be a text, a whole number or true, not {value!r}")


_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": {
        "anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "boolean"}]
    },
}

Options = Annotated[dict[str, str | bool], PlainValidator(_read_options), WithJsonSchema(_SCHEMA)]
"""Long options of ``sbatch`` by name; ``true`` for one without a value, ``false`` for none."""


def arguments_of(options: Mapping[str, str | bool]) -> list[str]:
    """The arguments that stand for these options."""
    chosen = {name: value for name, value in options.items() if value is not False}
    return [f"--{name}" if value is True else f"--{name}={value}" for name, value in chosen.items()]
