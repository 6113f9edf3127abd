"""The training service ``ssh``: trials on other machines, reached by SSH."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, model_validator

from dispatcher.experiment.fields import (
    Count,
    ResolvedPath,
    Section,
    Text,
    absolute_reference,
    choice_reader,
)
from dispatcher.experiment.needs import OfferedResources
from dispatcher.experiment.planned import PlannedWorker, distinct_names
from dispatcher.experiment.problems import Misfit
from dispatcher.experiment.references import ENV, FILE
from dispatcher.experiment.service import ServiceConfig
from dispatcher.experiment.trial_fields import VariableName, VariableText

_ADDRESS = re.compile(r"(\[[0-9a-fA-F:]+\]|[^:/@\s\[\]]+)(?::(?P<port>[0-9]{1,5}))?")
_JUMP = re.compile(r"(?:(?P<user>[^@\s]+)@)?(?P<host>\[[^\]]+\]|[^@:\s]+)(?::(?P<port>[0-9]+))?")


def _check_reference(text: str, info: ValidationInfo) -> str:
    if not text.startswith((ENV, FILE)) or text in (ENV, FILE):
        # The text is not repeated: it may be a secret, which no log may hold.
        raise ValueError(
            "must be a reference, 'env:NAME' or 'file:PATH': secrets stand in no experiment file"
        )
    return absolute_reference(text, info)


def _check_address(text: str) -> str:
    match = _ADDRESS.fullmatch(text)
    if match is None or int(match["port"] or 1) > 65535:
        raise ValueError(f"must be HOST or HOST:PORT, an IPv6 address in brackets, not {text!r}")
    return text


def _check_absolute(text: str) -> str:
    if not text.startswith("/"):
        raise ValueError(f"must be a path from the root of that machine, not {text!r}")
    return text.rstrip("/") or "/"


Secret = Annotated[Text, AfterValidator(_check_reference)]
Port = Annotated[Count, Field(le=65535)]
HeadAddress = Annotated[
    Annotated[Text, AfterValidator(_check_address)] | None,
    Field(
        description="Address of this machine at which agents reach the head by themselves, `HOST` "
        "or `HOST:PORT`, by CURVE; `channel` must listen there. Through the SSH connection if not "
        "given."
    ),
]
FolderThere = Annotated[Text, AfterValidator(_check_absolute)]

_LOGIN_NAMES = {
    "ip": "host",
    "username": "user",
    "passwd": "password",
    "sshKeyFile": "keyFile",
    "sshKeyPath": "keyFile",
    "sshPassphrase": "passphrase",
}


class LoginConfig(Section):
    """A machine and how to log in to it; what is not given is as `~/.ssh/config` has it."""

    other_names: ClassVar[Mapping[str, str]] = _LOGIN_NAMES

    host: Annotated[Text, Field(description="Name, address, or `Host` of `~/.ssh/config`.")]
    port: Annotated[Port | None, Field(description="Port of its SSH server; 22 if not given.")] = (
        None
    )
    user: Annotated[Text | None, Field(description="User who logs in there.")] = None
    key_file: Annotated[
        ResolvedPath | None,
        Field(description="Private key; if not given, the SSH agent's and `~/.ssh/id_*`."),
    ] = None
    passphrase: Annotated[
        Secret | None, Field(description="Passphrase of `keyFile`, as `env:NAME` or `file:PATH`.")
    ] = None
    password: Annotated[
        Secret | None,
        Field(description="Password, as `env:NAME` or `file:PATH`; keys are tried first."),
    ] = None
    known_hosts: Annotated[
        ResolvedPath | None,
        Field(description="File that must know the machine's key; the user's own if not given."),
    ] = None

    @property
    def label(self) -> str:
        """``host`` or ``host:port``."""
        return f"{self.host}:{self.port}" if self.port else self.host


class JumpConfig(LoginConfig):
    """The machine by way of which another one is reached."""

    @classmethod
    def read_short_form(cls, value: Any) -> Any:
        """Read ``user@host:port``."""
        match = _JUMP.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            return value
        keys = {key: text for key, text in match.groupdict().items() if text is not None}
        keys["host"] = keys["host"].strip("[]")
        return keys | ({"port": int(keys["port"])} if "port" in keys else {})


class MachineConfig(OfferedResources, LoginConfig):
    """One machine of `machineList`; its own values take precedence over the service's."""

    other_names: ClassVar[Mapping[str, str]] = {
        **_LOGIN_NAMES,
        **OfferedResources.other_names,
        "preCommand": "prolog",
    }

    name: Annotated[
        Text | None,
        Field(description="Its name in `top` and logs; its host if not given."),
    ] = None
    jump: Annotated[
        JumpConfig | None,
        Field(description="Machine through which it is reached: `user@host:port`, or keys."),
    ] = None
    slots: Annotated[
        Count | None,
        Field(description="Trials it may run at once; the service's `slots` if not given."),
    ] = None
    python: Annotated[
        Text,
        Field(
            description="Its Python, at least 3.9, with what trials import; `python` of a trial "
            "command is this one, too."
        ),
    ] = "python3"
    prolog: Annotated[
        Text | None,
        Field(
            description="Commands that bash runs there before the agent starts, such as `module "
            "load …`; trials inherit what it exports. A failing prolog is reported, and the agent "
            "starts anyway."
        ),
    ] = None
    environment: Annotated[
        dict[VariableName, VariableText],
        Field(
            description="Environment variables there, beside `trialEnvironment`; `env:NAME` and "
            "`file:PATH` are resolved on this machine."
        ),
    ] = Field(default_factory=dict)
    weights_root: Annotated[
        FolderThere | None,
        Field(
            description="Path at which it has mounted this machine's `weightsRoot`; the same path "
            "if not given."
        ),
    ] = None
    weights_read_roots: Annotated[
        tuple[FolderThere, ...],
        Field(
            description="Paths at which it has the folders of `weightsReadRoots`, in the same "
            "order; the same paths if not given."
        ),
    ] = ()
    work_folder: Annotated[
        Text,
        Field(description="Folder there for code, logs and working directories."),
    ] = "~/.bequeath"
    head_address: HeadAddress = None


class SshServiceConfig(ServiceConfig):
    """Run trials on machines that are reached by SSH, below an agent process on each."""

    platform: Annotated[
        Annotated[Literal["ssh"], BeforeValidator(lambda word: _read_platform(word))],
        Field(
            description="Kind of place where trials run: `ssh`; NNI's name `remote` is read, too."
        ),
    ]
    machine_list: Annotated[tuple[MachineConfig, ...], Field(description="The machines.")]
    head_address: HeadAddress = None

    def planned(self, usual: int, taken: Collection[str]) -> tuple[PlannedWorker, ...]:
        """Return a worker for each machine, with its name."""
        names = distinct_names([each.name or each.host for each in self.machine_list], taken)
        machines = zip(names, map(self._with_address, self.machine_list), strict=True)
        return tuple(self._worker(name, machine, usual) for name, machine in machines)

    def _worker(self, name: str, machine: MachineConfig, usual: int) -> PlannedWorker:
        given = machine.slots or self.slots
        return PlannedWorker(
            name,
            given or usual,
            machine,
            slots_given=given is not None,
            address=machine.head_address,
        )

    def _with_address(self, machine: MachineConfig) -> MachineConfig:
        """Return the machine with the service's head address, if it names none."""
        if machine.head_address is not None or self.head_address is None:
            return machine
        return machine.model_copy(update={"head_address": self.head_address})

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        if not self.machine_list:
            raise Misfit("names no machine", at=("machineList",), hint="write '- host: …'")
        named = Counter(each.name for each in self.machine_list if each.name is not None)
        for index, each in enumerate(self.machine_list):
            if each.name is not None and named[each.name] > 1:
                raise Misfit(
                    f"gives the name {each.name!r} twice",
                    at=("machineList", index, "name"),
                    hint="workers are distinguished by it",
                )
        return self


_read_word = choice_reader("ssh", "remote")


def _read_platform(value: object) -> object:
    word = _read_word(value)
    return "ssh" if word == "remote" else word
