"""The rights that a head needs in its namespace: one table, from which they are asked for and the
Role is written that gives them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from dispatcher.platforms.kubernetes.api.server import (
    CLAIMS,
    CONFIG_MAPS,
    EVENTS,
    JOBS,
    PODS,
    SECRETS,
    ApiServer,
    ObjectKind,
)

#: The name of the Role, and of its binding, unless they get another one.
ROLE = "bequeath"


#: A service account, also by the name that a server has for it. What begins with ``system:`` is a
#: user otherwise.
_ACCOUNT = re.compile(
    r"(system:serviceaccount:|(?!system:))(?P<space>[a-z0-9]([a-z0-9-]*[a-z0-9])?)"
    r":(?P<name>[a-z0-9]([a-z0-9.-]*[a-z0-9])?)"
)
_USER = re.compile(r"[^\x00-\x20\x7f]+")


class Right(NamedTuple):
    """A right to do something with objects of a kind. Without one that is not ``needed`` people are
    told less."""

    verb: str
    kind: ObjectKind
    needed: bool = True


RIGHTS = (
    Right("create", JOBS),
    Right("get", JOBS),
    Right("list", JOBS),
    Right("watch", JOBS),
    Right("delete", JOBS),
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


def missing_rights(server: ApiServer) -> list[Right]:
    """Return the rights that the server says we do not have. Raises ``BackendError``."""
    return [each for each in RIGHTS if not server.may(each.verb, each.kind)]


def role_of(namespace: str, subject: str, name: str = ROLE) -> Iterator[dict[str, Any]]:
    """Yield the Role with all rights, and the binding that gives it to somebody.

    Args:
        namespace: in which trials run.
        subject: a user, or ``NAMESPACE:NAME`` of a service account.
        name: of both.

    Raises:
        ValueError: it can be neither.
    """
    verbs: dict[ObjectKind, list[str]] = {}
    for each in RIGHTS:
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
