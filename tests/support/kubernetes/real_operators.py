"""Controllers that are played over a real API server: it has their definitions, judges all that is
sent by them, and its own controllers collect what objects own."""

from __future__ import annotations

import contextlib
import datetime
import threading
import urllib.error
from collections.abc import Iterator, Sequence
from typing import Any

from tests.support.kubernetes.crds import Crd
from tests.support.kubernetes.operators import Object, Operator, owned_by
from tests.support.kubernetes.real import SPACE, RealCluster
from tests.support.processes import wait_until

STEP_S = 0.2

_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_MERGE = "application/merge-patch+json"


class _RealHands:
    """See :class:`tests.support.kubernetes.operators.Hands`."""

    def __init__(self, there: RealCluster, crds: Sequence[Crd]) -> None:
        self._there = there
        self._paths = {each.plural: path_of(each) for each in crds}
        self._paths["pods"] = f"/api/v1/namespaces/{SPACE}/pods"
        self._with_status = {each.plural for each in crds if each.has_status}

    def timestamp(self) -> str:
        return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def make(self, plural: str, body: Object) -> None:
        self._ask("POST", self._paths[plural], body)

    def delete(self, plural: str, name: str, grace_s: int | None = None) -> None:
        options = {} if grace_s is None else {"gracePeriodSeconds": grace_s}
        self._ask("DELETE", f"{self._paths[plural]}/{name}", options)

    def note(self, plural: str, name: str, status: Object) -> None:
        own = "/status" if plural in self._with_status else ""
        self._ask("PATCH", f"{self._paths[plural]}/{name}{own}", {"status": status}, _MERGE)

    def finish(self, plural: str, name: str) -> None:
        """Do nothing: the server's own controller removes it."""

    def _ask(self, verb: str, path: str, body: Any, kind: str = "application/json") -> None:
        try:
            self._there.admin(verb, path, body, kind)
        except urllib.error.HTTPError as error:
            if error.code not in (404, 409):
                raise AssertionError(f"{verb} {path}: {error.read().decode()}") from error


def path_of(crd: Crd) -> str:
    """The path of all objects of a kind."""
    space = f"/namespaces/{SPACE}" if crd.in_namespaces else ""
    return f"/apis/{crd.api_version}{space}/{crd.plural}"


@contextlib.contextmanager
def played(there: RealCluster, operators: Sequence[Operator]) -> Iterator[None]:
    """Controllers for a while, and their definitions from then on.

    Args:
        there: the cluster.
        operators: what is played.
    """
    for each in operators:
        _define(there, each.crd)
        for body in each.given:
            _post(there, path_of(each.crd), body)
    ended = threading.Event()
    errors: list[BaseException] = []
    thread = threading.Thread(target=_work, args=(there, operators, ended, errors), daemon=True)
    thread.start()
    try:
        for each in operators:
            if each.name_label:  # others own nothing
                _await_collector(there, each.crd)
        yield
    finally:
        for each in operators:
            with contextlib.suppress(OSError):
                there.admin("DELETE", path_of(each.crd), {"propagationPolicy": "Background"})
        ended.set()
        thread.join(30)
    if errors:
        raise errors[0]


def _define(there: RealCluster, crd: Crd) -> None:
    """Have the server take a definition. A large one keeps it busy for half a minute."""
    name = crd.document["metadata"]["name"]

    def is_served() -> bool:
        try:
            status = there.admin("GET", f"{_CRDS}/{name}").get("status", {})
        except urllib.error.HTTPError as error:
            if error.code == 404:
                _create(there, crd.document)
            return False
        except OSError:
            return False
        holds = {x["type"] for x in status.get("conditions") or [] if x["status"] == "True"}
        return "Established" in holds

    wait_until(is_served, f"{name} is served")


def _create(there: RealCluster, document: Object) -> None:
    """Create a definition. A server of 1.20 takes some defaults that are empty texts for none, and
    refuses them; without them it asks for the fields that are keys of lists."""
    try:
        _post(there, _CRDS, document)
    except AssertionError as refused:
        if 'Invalid value: \\"null\\"' not in str(refused):
            raise
        _post(there, _CRDS, _without_empty(document))


def _without_empty(schema: Any) -> Any:
    """A schema without defaults that are empty texts."""
    if isinstance(schema, list):
        return [_without_empty(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {k: _without_empty(v) for k, v in schema.items() if (k, v) != ("default", "")}
    if keys := made.get("x-kubernetes-list-map-keys"):
        made["items"]["required"] = sorted({*made["items"].get("required", ()), *keys})
    return made


def _post(there: RealCluster, path: str, body: Object) -> None:
    """Create an object that may be there, as after a request without an answer."""
    try:
        there.admin("POST", path, body)
    except urllib.error.HTTPError as error:
        if error.code != 409:
            raise AssertionError(error.read().decode()) from error


def _await_collector(there: RealCluster, crd: Crd) -> None:
    """Wait until the server's collector knows the kind, which it learns within half a minute: what
    is deleted before that stays as long."""
    owner = {"apiVersion": crd.api_version, "kind": crd.word, "name": "nobody", "uid": "0-0"}
    about = {"name": "collected", "ownerReferences": [owner]}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": about}

    def is_answered() -> bool:
        with contextlib.suppress(OSError):
            _post(there, f"/api/v1/namespaces/{SPACE}/secrets", secret)
            return True
        return False

    def is_collected() -> bool:
        with contextlib.suppress(OSError):
            return all(x["metadata"]["name"] != "collected" for x in there.all("secrets"))
        return False

    wait_until(is_answered, "the server has a Secret")
    wait_until(is_collected, f"what a {crd.word} owned is collected")


def _work(
    there: RealCluster,
    operators: Sequence[Operator],
    ended: threading.Event,
    errors: list[BaseException],
) -> None:
    hands = _RealHands(there, [each.crd for each in operators])
    while not ended.wait(STEP_S):
        try:
            for operator in operators:
                objects = there.admin("GET", path_of(operator.crd))["items"]
                pods = there.all("pods") if objects else []
                for each in objects:
                    operator.step(hands, each, owned_by(each, pods))
        except OSError:
            continue  # the server is away
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            errors.append(error)
            return
