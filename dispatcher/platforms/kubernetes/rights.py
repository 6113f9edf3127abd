"""The rights that a head needs in its namespace: one table, from which they are asked for and the
Role is written that gives them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from dispatcher.platforms.kubernetes.api.server import (
    CLAIMS,
    CONFIG_MAPS,
    EVENTS,
    PODS,
    SECRETS,
    ApiServer,
    ObjectKind,
)
from dispatcher.platforms.kubernetes.kind import AllocationKind, Right

#: The name of the Role, and of its binding, unless they get another one.
ROLE = "bequeath"


#: A service account, also by the name that a server has for it. What begins with ``system:`` is a
#: user otherwise.
_ACCOUNT = re.compile(
    r"(system:serviceaccount:|(?!system:))(?P<space>[a-z0-9]([a-z0-9-]*[a-z0-9])?)"
    r":(?P<name>[a-z0-9]([a-z0-9.-]*[a-z0-9])?)"
)
_USER = re.compile(r"[^\x00-\x20\x7f]+")


_USUAL = (
    Right("list", PODS),
    Right("watch", PODS),
    Right("delete", PODS),
    Right("create", SECRETS),
    Right("patch", SECRETS),
    Right("create", CONFIG_MAPS, needed=False),
    Right("list", CONFIG_MAPS, needed=False),
    Right("delete", CONFIG_MAPS, needed=False),
    Right("list", EVENTS, needed=False),
    Right("get", CLAIMS, needed=False),
)


def rights_of(*kinds: AllocationKind) -> list[Right]:
    """The rights that a head needs whose allocations are objects of these kinds."""
    own: list[Right] = []
    for kind in kinds:
        verbs = ["create", "get", "list", "watch", "delete"]
        verbs += ["patch"] if kind.stopping is not None else []
        own += [Right(verb, kind.resource) for verb in verbs]
    more = [each for kind in kinds for each in kind.more_rights]
    rights: dict[tuple[str, ObjectKind], Right] = {}
    for each in (*own, *_USUAL, *more):
        before = rights.get((each.verb, each.kind), each)
        rights[each.verb, each.kind] = each._replace(needed=each.needed or before.needed)
    return list(rights.values())


def missing_rights(server: ApiServer, kind: AllocationKind) -> list[Right]:
    """Return the rights that the server says we do not have. Raises ``BackendError``."""
    return [each for each in rights_of(kind) if not server.may(each.verb, each.kind)]


def role_of(
    namespace: str, subject: str, kinds: Sequence[AllocationKind], name: str = ROLE
) -> Iterator[dict[str, Any]]:
    """Yield the Role with all rights, and the binding that gives it to somebody.

    Args:
        namespace: in which trials run.
        subject: a user, or ``NAMESPACE:NAME`` of a service account.
        kinds: those that allocations may be of.
        name: of both.

    Raises:
        ValueError: it can be neither.
    """
    verbs: dict[ObjectKind, list[str]] = {}
    for each in rights_of(*kinds):
        verbs.setdefault(each.kind, []).append(each.verb)
    about = {"name": name, "namespace": namespace}
    rules = [
        {"apiGroups": [kind.group], "resources": [kind.plural], "verbs": words}
        for kind, words in verbs.items()
    ]
    group = "rbac.authorization.k8s.io"
    account = _ACCOUNT.fullmatch(subject)
    if account is None and (
        not _USER.fullmatch(subject) or subject[0] == ":" or subject[-1] == ":"
    ):
        raise ValueError(f"must be a user, or NAMESPACE:NAME of a service account, not {subject!r}")
    given = {"kind": "User", "name": subject, "apiGroup": group}
    if account is not None:
        given = {"kind": "ServiceAccount", "name": account["name"], "namespace": account["space"]}
    yield {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": about, "rules": rules}
    yield {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding",
        "metadata": about,
        "subjects": [given],
        "roleRef": {"apiGroup": group, "kind": "Role", "name": name},
    }
