"""The training service ``kubeflow``: trials in jobs of the Kubeflow Training Operator v1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from dispatcher.experiment.fields import Section, choice_reader
from dispatcher.experiment.problems import Misfit
from dispatcher.platforms.kubernetes.roles import Role, RoleConfig, shared_out
from dispatcher.platforms.kubernetes.section import Fields, KubernetesService, fit_quantities

if TYPE_CHECKING:
    from dispatcher.platforms.kubernetes.kind import AllocationKind

#: The version that is spoken, and how it may be written.
API_VERSION = "kubeflow.org/v1"
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


class Roles(Section):
    """The pods of a trial by their roles; those of `worker` are what the others leave."""

    master: Annotated[
        RoleConfig | None, Field(description="Of a `PyTorchJob`: the pod of rank 0.")
    ] = None
    chief: Annotated[
        RoleConfig | None,
        Field(description="Of a `TFJob`: the pod that speaks, in place of the first worker."),
    ] = None
    worker: Annotated[RoleConfig | None, Field(description="The pods of no other role.")] = None
    ps: Annotated[RoleConfig | None, Field(description="Of a `TFJob`: parameter servers.")] = None
    evaluator: Annotated[RoleConfig | None, Field(description="Of a `TFJob`.")] = None

    @property
    def given(self) -> dict[str, RoleConfig]:
        """The roles that the file names."""
        every = {name: getattr(self, name) for name in type(self).model_fields}
        return {name: role for name, role in every.items() if role is not None}


class KubeflowSection(KubernetesService):
    """Run trials in PyTorchJobs or TFJobs of the Kubeflow Training Operator v1, each with an agent
    that takes many trials."""

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
        Roles,
        Field(
            description="Roles of the pods of one trial, where it has several (`trialNodes`): what "
            "is particular to each, and how many there are."
        ),
    ] = Roles()
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
        return first if self.kind == "PyTorchJob" or first in self.roles.given else "worker"

    def roles_of(self, nodes: int) -> list[Role]:
        """The roles of a trial, in the order of ranks. Raises ``RolesDoNotFit``.

        Args:
            nodes: how many pods it has.
        """
        order = ROLES[self.kind]
        return shared_out(nodes, self.roles.given, order, first=self.first_role, rest="worker")

    @model_validator(mode="after")
    def _fit_roles(self) -> Self:
        for name, role in self.roles.given.items():
            if name not in ROLES[self.kind]:
                roles = ", ".join(ROLES[self.kind])
                text = f"names {name!r} below 'roles', and a {self.kind} has {roles}"
                raise Misfit(text, at=("roles", name))
            if name in _ALONE and role.replicas not in (None, 1):
                text = f"wants {role.replicas} of {name!r}, of which a trial has one"
                raise Misfit(text, at=("roles", name, "replicas"))
            requests = self.requests if role.requests is None else role.requests
            limits = self.limits if role.limits is None else role.limits
            fit_quantities(requests, limits, ("roles", name))
        for field in self.run_policy:
            if field in OURS_IN_RUN_POLICIES:
                raise Misfit(
                    f"has 'runPolicy.{field}', which bequeath writes itself",
                    at=("runPolicy", field),
                    hint=OURS_IN_RUN_POLICIES[field],
                )
        return self
