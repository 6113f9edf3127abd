"""Roles of the pods of one trial, for kinds of objects that have some. Pure.

The pods of a role are alike. Those of the first one come first in the order of ranks, and its first
pod speaks for all.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from dispatcher.experiment.fields import Count, Section, Text
from dispatcher.platforms.kubernetes.section import Image, KubernetesService, Quantities
from trial_runtime.agent.nodes.meeting import OFFSET_VARIABLE

#: Says the role of a pod to its trial.
ROLE_VARIABLE = "BEQUEATH_ROLE"


class RoleConfig(Section):
    """The pods of one role, as far as they differ from the others."""

    name: Annotated[Text, Field(description="Name of the role.")]
    replicas: Annotated[
        Count | None,
        Field(description="How many pods have this role; what the other roles leave if not given."),
    ] = None
    image: Annotated[Image | None, Field(description="Their image; that of all if not given.")] = (
        None
    )
    requests: Annotated[
        Quantities | None,
        Field(description="Resources that each is promised; as all if not given."),
    ] = None
    limits: Annotated[
        Quantities | None, Field(description="Most that each may use; as all if not given.")
    ] = None


class Role(NamedTuple):
    """A role as an order has it.

    Attributes:
        name: of the role, as the file has it.
        replicas: how many pods have it.
        first_rank: the rank of the first of them.
        config: what is particular to them.
    """

    name: str
    replicas: int
    first_rank: int
    config: RoleConfig


class RolesDoNotFit(ValueError):
    """Raised when the pods of all roles are not those of a trial; ``role`` is the one to change."""

    def __init__(self, text: str, role: str) -> None:
        super().__init__(text)
        self.role = role


def shared_out(
    nodes: int, given: Mapping[str, RoleConfig], order: Iterable[str], *, first: str, rest: str
) -> list[Role]:
    """Share the pods of a trial out among roles, in the order of their ranks.

    Args:
        nodes: how many pods there are. One alone has the first role, whatever is given.
        given: roles of the file, by their names.
        order: all names of roles.
        first: the role that speaks: it has one pod, unless it is ``rest``.
        rest: the role of all pods that no other one has.

    Raises:
        RolesDoNotFit: they name another number of pods.
    """
    if nodes == 1:
        return [Role(first, 1, 0, given.get(first, RoleConfig(name=first)))]
    wanted = {name: given.get(name) for name in order if name in given or name in (first, rest)}
    counts = {name: 1 if role is None else role.replicas or 1 for name, role in wanted.items()}
    left = nodes - sum(many for name, many in counts.items() if name != rest)
    if left < 0 or (left == 0 and rest in given) or (left == 0 and first == rest):
        text = f"leave no pod for {rest!r}: a trial has {nodes} ('trialNodes')"
        raise RolesDoNotFit(text, next(name for name in wanted if name != rest))
    asked = given[rest].replicas if rest in given else None
    if asked is not None and asked != left:
        text = f"name {nodes - left + asked} pods, and a trial has {nodes} ('trialNodes')"
        raise RolesDoNotFit(text, rest)
    counts[rest] = left
    return list(_ranked(counts, wanted))


def _ranked(counts: Mapping[str, int], wanted: Mapping[str, RoleConfig | None]) -> Iterator[Role]:
    rank = 0
    for name, many in counts.items():
        if many:
            yield Role(name, many, rank, wanted[name] or RoleConfig(name=name))
        rank += many


def template_of(
    role: Role, template: Mapping[str, Any], section: KubernetesService, nodes: int
) -> dict[str, Any]:
    """The template of the pods of a role.

    Args:
        role: of them.
        template: of the pods of all roles.
        section: the service's part of the file.
        nodes: how many pods a trial has.
    """
    made = copy.deepcopy(dict(template))
    container = made["spec"]["containers"][0]
    config = role.config
    container["image"] = config.image or section.image
    container["resources"] = {
        "requests": section.requests if config.requests is None else config.requests,
        "limits": section.limits if config.limits is None else config.limits,
    }
    if nodes > 1:
        container["env"] = [
            *container["env"],
            {"name": ROLE_VARIABLE, "value": role.name},
            {"name": OFFSET_VARIABLE, "value": str(role.first_rank)},
        ]
    return made
