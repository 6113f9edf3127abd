"""The training service ``ssh``: trials on other machines, reached by SSH."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Annotated, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from dispatcher.experiment.addresses import HeadAddress
from dispatcher.experiment.fields import (
    Count,
    Text,
    VariablesThere,
    choice_reader,
)
from dispatcher.experiment.needs import OfferedResources
from dispatcher.experiment.problems import Misfit
from dispatcher.experiment.service import PlannedWorker, ServiceConfig, distinct_names
from dispatcher.platforms.logins.section import LOGIN_NAMES, FolderThere, ReachedConfig

AddressOfHead = Annotated[
    HeadAddress,
    Field(
        description="Address of this machine at which agents reach the head by themselves, `HOST` "
        "or `HOST:PORT`, by CURVE; `channel` must listen there. Through the SSH connection if not "
        "given."
    ),
]


class MachineConfig(OfferedResources, ReachedConfig):
    """One machine of `machineList`; its own values take precedence over the service's."""

    other_names: ClassVar[Mapping[str, str]] = {
        **LOGIN_NAMES,
        **OfferedResources.other_names,
        "preCommand": "prolog",
    }

    name: Annotated[
        Text | None,
        Field(description="Name in `top` and logs; its host if not given."),
    ] = None
    slots: Annotated[
        Count | None,
        Field(description="Trials it may run at once; the service's `slots` if not given."),
    ] = None
    python: Annotated[
        Text,
        Field(
            description="Python of the machine, at least 3.9, with what trials import; `python` of "
            "a trial command is this one, too."
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
    environment: VariablesThere = Field(default_factory=dict)
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
    head_address: AddressOfHead = None


class SshServiceConfig(ServiceConfig):
    """Run trials on machines that are reached by SSH, below an agent process on each."""

    platform: Annotated[
        Annotated[Literal["ssh"], BeforeValidator(lambda word: _read_platform(word))],
        Field(
            description="Kind of place where trials run: `ssh`; NNI's name `remote` is read, too."
        ),
    ]
    machine_list: Annotated[tuple[MachineConfig, ...], Field(description="The machines.")]
    head_address: AddressOfHead = None

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
