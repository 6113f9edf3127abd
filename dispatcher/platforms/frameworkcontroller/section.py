"""The training service ``frameworkcontroller``: trials in Frameworks of FrameworkController."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from dispatcher.experiment.fields import choice_reader
from dispatcher.experiment.problems import Misfit
from dispatcher.platforms.kubernetes.roles import Role, RoleConfig, shared_out
from dispatcher.platforms.kubernetes.section import KubernetesService, Name, fit_quantities

if TYPE_CHECKING:
    from dispatcher.platforms.kubernetes.kind import AllocationKind

#: The role of pods where the file names none.
WORKER = "worker"

_ROLE = re.compile(r"[a-z0-9]{1,63}")


class FrameworkSection(KubernetesService):
    """Run trials in Frameworks of FrameworkController, with an agent in each."""

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
        tuple[RoleConfig, ...],
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
        given = {each.name: each for each in self.roles}
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
            if not _ROLE.fullmatch(role.name):
                raise Misfit(
                    f"names {role.name!r} among 'roles', whose names are lower-case letters and "
                    "digits here, at most 63",
                    at=("roles", index, "name"),
                )
            if role.name in names:
                raise Misfit(
                    f"names {role.name!r} twice among 'roles'", at=("roles", index, "name")
                )
            names.add(role.name)
            requests = self.requests if role.requests is None else role.requests
            limits = self.limits if role.limits is None else role.limits
            fit_quantities(requests, limits, ("roles", index))
        return self
