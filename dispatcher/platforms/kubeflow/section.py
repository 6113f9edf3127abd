"""The training service ``kubeflow``: trials in jobs of the Kubeflow Training Operator v1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Final, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from dispatcher.experiment.fields import choice_reader
from dispatcher.experiment.problems import Misfit
from dispatcher.platforms.kubernetes.roles import Role, RoleConfig, shared_out
from dispatcher.platforms.kubernetes.section import Fields, KubernetesService, fit_quantities

if TYPE_CHECKING:
    from dispatcher.platforms.kubernetes.kind import AllocationKind

#: The version that is spoken, and how it may be written.
API_VERSION: Final = "kubeflow.org/v1"
_API_VERSIONS = (API_VERSION, "v1")

#: Roles of each kind, in the order of their ranks.
ROLES: Mapping[str, Sequence[str]] = {
    "PyTorchJob": ("master", "worker"),
    "TFJob": ("chief", "worker", "ps", "evaluator"),
}

#: Roles of one pod, which speaks where there is one.
_ALONE = ("master", "chief")

#: Fields of a run policy that are ours, and what to write in their place.
OURS_IN_RUN_POLICIES = {
    "activeDeadlineSeconds": "write 'wallTime', which does not count the queue",
    "backoffLimit": "each try is a trial's next attempt, which `retries` counts",
    "cleanPodPolicy": "pods of one that has ended are removed with it",
    "suspend": "write 'queue'",
    "ttlSecondsAfterFinished": "the head removes what has ended, and the operator what it leaves",
}

Kind = Literal["PyTorchJob", "TFJob"]


def _read_version(value: object) -> object:
    if value in _API_VERSIONS:
        return API_VERSION
    raise ValueError(
        f"is {value!r}, which no operator serves any more that is in use: only {API_VERSION} is "
        "spoken; leave it out"
    )


class KubeflowSection(KubernetesService):
    """Run trials in PyTorchJobs or TFJobs of the Kubeflow Training Operator, each with an agent."""

    platform: Annotated[
        Annotated[Literal["kubeflow"], BeforeValidator(choice_reader("kubeflow"))],
        Field(description="Kind of place where trials run: `kubeflow`."),
    ]
    kind: Annotated[
        Annotated[Kind, BeforeValidator(choice_reader("PyTorchJob", "TFJob"))],
        Field(description="Kind of the objects: `PyTorchJob` or `TFJob`."),
    ] = "PyTorchJob"
    api_version: Annotated[
        Annotated[Literal["kubeflow.org/v1"], BeforeValidator(_read_version)],
        Field(description="Version of these objects; there is one."),
    ] = API_VERSION
    roles: Annotated[
        tuple[RoleConfig, ...],
        Field(
            description="Roles of the pods of one trial, where it has several (`trialNodes`): "
            "`master` and `worker`, or `chief`, `worker`, `ps` and `evaluator`. Those of `worker` "
            "are what the others leave."
        ),
    ] = ()
    run_policy: Annotated[
        Fields,
        Field(description="Further fields of `runPolicy`, such as `schedulingPolicy`."),
    ] = Field(default_factory=dict)

    @classmethod
    def allocation_kinds(cls) -> Sequence[AllocationKind]:
        """See :meth:`KubernetesService.allocation_kinds`."""
        from dispatcher.platforms.kubeflow.kinds import KINDS

        return tuple(KINDS.values())

    @property
    def allocation_kind(self) -> AllocationKind:
        """See :attr:`KubernetesService.allocation_kind`: as the file says."""
        from dispatcher.platforms.kubeflow.kinds import KINDS

        return KINDS[self.kind]

    @property
    def first_role(self) -> str:
        """The role that speaks."""
        first = ROLES[self.kind][0]
        return first if self.kind == "PyTorchJob" or first in self.roles_given else "worker"

    @property
    def roles_given(self) -> dict[str, RoleConfig]:
        """The roles that the file names, by their names."""
        return {role.name: role for role in self.roles}

    def roles_of(self, nodes: int) -> list[Role]:
        """The roles of a trial, in the order of ranks. Raises ``RolesDoNotFit``.

        Args:
            nodes: how many pods it has.
        """
        order = ROLES[self.kind]
        return shared_out(nodes, self.roles_given, order, first=self.first_role, rest="worker")

    @model_validator(mode="after")
    def _fit_roles(self) -> Self:
        for index, role in enumerate(self.roles):
            name, at = role.name, ("roles", index)
            if name not in ROLES[self.kind]:
                roles = ", ".join(ROLES[self.kind])
                text = f"names {name!r} among 'roles', and a {self.kind} has {roles}"
                raise Misfit(text, at=(*at, "name"))
            if role is not self.roles_given[name]:
                raise Misfit(f"names {name!r} twice among 'roles'", at=(*at, "name"))
            if name in _ALONE and role.replicas not in (None, 1):
                text = f"wants {role.replicas} of {name!r}, of which a trial has one"
                raise Misfit(text, at=(*at, "replicas"))
            requests = self.requests if role.requests is None else role.requests
            limits = self.limits if role.limits is None else role.limits
            fit_quantities(requests, limits, at)
        for field in self.run_policy:
            if field in OURS_IN_RUN_POLICIES:
                raise Misfit(
                    f"has 'runPolicy.{field}', which bequeath writes itself",
                    at=("runPolicy", field),
                    hint=OURS_IN_RUN_POLICIES[field],
                )
        return self
