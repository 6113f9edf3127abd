"""The training service ``frameworkcontroller``: trials in Frameworks of FrameworkController."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from dispatcher.experiment.fields import Text, choice_reader
from dispatcher.experiment.problems import Misfit
from dispatcher.platforms.kubernetes.roles import Role, RoleConfig, shared_out
from dispatcher.platforms.kubernetes.section import KubernetesService, Name, fit_quantities

if TYPE_CHECKING:
    from dispatcher.platforms.kubernetes.kind import AllocationKind

#: The role of pods where the file names none.
WORKER = "worker"

_ROLE = re.compile(r"[a-z0-9]{1,63}")


def _check_role(name: str) -> str:
    if not _ROLE.fullmatch(name):
        raise ValueError(
            f"must be lower-case letters and digits, at most 63, as FrameworkController has names "
            f"of roles, not {name!r}"
        )
    return name


class TaskRole(RoleConfig):
    """The pods of one role of a Framework."""

    other_names: ClassVar[Mapping[str, str]] = {
        **RoleConfig.other_names,
        "taskNumber": "replicas",
    }

    name: Annotated[
        Annotated[Text, AfterValidator(_check_role)],
        Field(description="Name of the role, which its pods have in theirs."),
    ]


class FrameworkSection(KubernetesService):
    """Run trials in Frameworks of FrameworkController, each with an agent that takes many
    trials."""

    other_names: ClassVar[Mapping[str, str]] = {
        **KubernetesService.other_names,
        "serviceAccountName": "serviceAccount",
        "taskRoles": "roles",
    }

    platform: Annotated[
        Annotated[
            Literal["frameworkcontroller"], BeforeValidator(choice_reader("frameworkcontroller"))
        ],
        Field(description="Kind of place where trials run: `frameworkcontroller`."),
    ]
    queue: Annotated[
        Name | None, Field(description="Not to be given: Kueue knows no Frameworks.")
    ] = None
    roles: Annotated[
        tuple[TaskRole, ...],
        Field(
            description="Roles of the pods of one trial, where it has several (`trialNodes`), in "
            "the order of their ranks: what is particular to each, and how many there are."
        ),
    ] = ()

    @classmethod
    def allocation_kinds(cls) -> Sequence[AllocationKind]:
        """See :meth:`KubernetesService.allocation_kinds`."""
        from dispatcher.platforms.frameworkcontroller.frameworks import FRAMEWORK

        return (FRAMEWORK,)

    def roles_of(self, nodes: int) -> list[Role]:
        """The roles of a trial, in the order of ranks. Raises ``RolesDoNotFit``.

        Args:
            nodes: how many pods it has.
        """
        given: dict[str, RoleConfig] = {each.name: each for each in self.roles}
        names = list(given) or [WORKER]
        unsaid = [each.name for each in self.roles if each.replicas is None]
        rest = unsaid[-1] if unsaid else names[-1]
        return shared_out(nodes, given, names, first=names[0], rest=rest)

    @model_validator(mode="after")
    def _fit_frameworks(self) -> Self:
        if self.queue is not None:
            raise Misfit(
                "has a 'queue', and Kueue knows no Frameworks",
                at=("queue",),
                hint="leave it out; 'pod: {schedulerName: …}' is for a scheduler of its own",
            )
        names: set[str] = set()
        for index, role in enumerate(self.roles):
            if role.name in names:
                raise Misfit(f"has two roles {role.name!r}", at=("roles", index, "name"))
            names.add(role.name)
            requests = self.requests if role.requests is None else role.requests
            limits = self.limits if role.limits is None else role.limits
            fit_quantities(requests, limits, ("roles", index))
        return self
