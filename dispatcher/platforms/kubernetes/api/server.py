"""Questions to an API server: objects of one namespace, by kind and name, and how they change.

Objects are plain documents. Those who write them know their form; those who read them expect
anything.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NamedTuple
from urllib.parse import quote

from dispatcher.platforms.kubernetes.api.access import Access
from dispatcher.platforms.kubernetes.api.errors import NotThere, TooOld, Unreachable, error_of
from dispatcher.platforms.kubernetes.api.transport import ServerAnswer, Stream, Transport

Document = Mapping[str, Any]

#: Who has written a field, for objects that several write.
MANAGER = "bequeath"

#: Objects in one answer of a list, and in all of them.
PAGE, MOST_OBJECTS = 500, 50_000

#: How long a watch lasts (seconds), and how long it may be silent: servers send a bookmark about
#: every minute, and some none.
WATCH_S = 290
SILENT_S = WATCH_S + 30.0


class ObjectKind(NamedTuple):
    """A kind of object.

    Attributes:
        api: the path of its group and version.
        plural: its name in paths.
        in_namespaces: whether each of its objects is in one.
    """

    api: str
    plural: str
    in_namespaces: bool = True

    @property
    def group(self) -> str:
        """The group; empty for the oldest one."""
        parts = self.api.split("/")
        return parts[1] if parts[0] == "apis" else ""

    @property
    def version(self) -> str:
        """The group and the version, as objects have it."""
        return self.api.partition("/")[2]


JOBS = ObjectKind("apis/batch/v1", "jobs")
PODS = ObjectKind("api/v1", "pods")
CONFIG_MAPS = ObjectKind("api/v1", "configmaps")
SECRETS = ObjectKind("api/v1", "secrets")
EVENTS = ObjectKind("api/v1", "events")
CLAIMS = ObjectKind("api/v1", "persistentvolumeclaims")
NODES = ObjectKind("api/v1", "nodes", in_namespaces=False)


class ObjectList(NamedTuple):
    """All objects of a list, and the version from which a watch goes on."""

    objects: tuple[Document, ...]
    version: str
    date: str


@dataclass(frozen=True)
class Change:
    """One event of a watch.

    Attributes:
        kind: ``ADDED``, ``MODIFIED``, ``DELETED`` or ``BOOKMARK``.
        object: as it is now, or was at last; of a bookmark hardly more than its version.
        version: from which a watch goes on.
    """

    kind: str
    object: Document
    version: str


class ServerVersion(NamedTuple):
    """The version of a server; ``major`` and ``minor`` are 0 where it says nothing readable."""

    major: int
    minor: int
    text: str


class ApiServer:
    """One namespace of one server. Threads: any.

    Args:
        access: how the server is reached.
        namespace: empty: that of the access.
        transport: another one in tests.
    """

    def __init__(
        self, access: Access, namespace: str = "", *, transport: Transport | None = None
    ) -> None:
        self.namespace = namespace or access.namespace
        self._transport = transport or Transport(access)

    @property
    def where(self) -> str:
        """The server, for people."""
        return self._transport.where

    def close(self) -> None:
        """Close the connections that are kept."""
        self._transport.close()

    def version(self) -> ServerVersion:
        """Ask for the server's version, which is also a way to see that it answers."""
        document = _mapping(self._transport.ask("GET", "/version", asked="ask for its version"))
        numbers = []
        for key in ("major", "minor"):
            digits = "".join(c for c in str(document.get(key, "")) if c.isdigit())
            numbers.append(int(digits[:4] or 0))
        return ServerVersion(numbers[0], numbers[1], str(document.get("gitVersion", "")))

    def plurals(self, api: str) -> list[str]:
        """The names that kinds of objects of a group and version have in paths. Raises
        ``NotThere``: there is no such version; or another ``BackendError``."""
        answer = self._transport.ask("GET", f"/{api}", asked=f"ask for the kinds of {api}")
        return _texts(_mapping(answer).get("resources"), "name")

    def versions(self, group: str) -> list[str]:
        """The versions of a group, as objects have them. Raises ``NotThere``: there is no such
        group; or another ``BackendError``."""
        answer = self._transport.ask("GET", f"/apis/{group}", asked=f"ask for {group}")
        return _texts(_mapping(answer).get("versions"), "groupVersion")

    def schemas(self, api: str) -> dict[str, Document]:
        """The schemas of the objects of a group and version, by their kind: the fields that this
        server takes. All who are logged in may ask. Raises ``BackendError``."""
        asked = f"ask for the fields of {api}"
        try:
            document = _mapping(self._transport.ask("GET", f"/openapi/v3/{api}", asked=asked))
            found = _below(document, "components", "schemas")
        except NotThere:  # before 1.24 there is one document of all groups
            document = _mapping(self._transport.ask("GET", "/openapi/v2", asked=asked))
            found = _below(document, "definitions")
        group, _, version = api.removeprefix("apis/").rpartition("/")
        return {
            str(each.get("kind")): schema
            for schema in found.values()
            for each in _mappings(_below(schema), "x-kubernetes-group-version-kind")
            if (each.get("group"), each.get("version")) == (group, version)
        }

    def get(self, kind: ObjectKind, name: str) -> Document:
        """Read one object. Raises ``NotThere``, or another ``BackendError``."""
        return _mapping(self._ask("GET", kind, name, asked=self._asked("read", kind, name)))

    def create(self, kind: ObjectKind, body: Document, *, dry_run: bool = False) -> ServerAnswer:
        """Create an object. Raises ``AlreadyThere``, or another ``BackendError``.

        Args:
            kind: of the object.
            body: the object.
            dry_run: have it checked by all that would have a say, and keep nothing.
        """
        name = str(body["metadata"]["name"])
        query: dict[str, str | int] = {"fieldManager": MANAGER, "fieldValidation": "Warn"}
        if dry_run:
            query["dryRun"] = "All"
        asked = self._asked("try" if dry_run else "create", kind, name)
        return self._ask("POST", kind, asked=asked, query=query, body=body)

    def apply(self, kind: ObjectKind, body: Document) -> Document:
        """Have the fields of an object as they are here, whether it exists or not; fields of other
        managers stay, and those that we had and are not here go.

        Args:
            kind: of the object.
            body: the object, with all that is ours in it.
        """
        name = str(body["metadata"]["name"])
        answer = self._ask(
            "PATCH",
            kind,
            name,
            asked=self._asked("apply", kind, name),
            query={"fieldManager": MANAGER, "force": "true"},
            body=body,
            kind_of_body="application/apply-patch+yaml",  # JSON is YAML
        )
        return _mapping(answer)

    def merge(self, kind: ObjectKind, name: str, fields: Document) -> None:
        """Put some fields of an object in the place of those that it has; the rest stays. Raises
        ``NotThere``, or another ``BackendError``.

        Args:
            kind: of the object.
            name: its name.
            fields: what is to be so.
        """
        asked = self._asked("change", kind, name)
        query: dict[str, str | int] = {"fieldManager": MANAGER}
        kind_of_body = "application/merge-patch+json"
        self._ask(
            "PATCH", kind, name, asked=asked, query=query, body=fields, kind_of_body=kind_of_body
        )

    def delete(
        self, kind: ObjectKind, name: str, *, first: str = "Foreground", grace_s: int | None = None
    ) -> None:
        """Delete an object, and what it owns. Raises ``NotThere``, or another ``BackendError``.

        Args:
            kind: of the object.
            name: its name.
            first: ``Foreground``: what it owns goes first; ``Background``: the object does.
            grace_s: of a pod, whose own it takes the place of. Never 0: the object would be gone
                while its processes live on.
        """
        options: dict[str, Any] = {"propagationPolicy": first}
        if grace_s is not None:
            options["gracePeriodSeconds"] = max(1, grace_s)
        asked = self._asked("delete", kind, name)
        self._ask("DELETE", kind, name, asked=asked, body=options)

    def list(self, kind: ObjectKind, labels: str, *, fields: str = "") -> ObjectList:
        """List objects, page by page. Raises ``BackendError``.

        Args:
            kind: of the objects.
            labels: a selector.
            fields: a selector of fields.
        """
        asked = self._asked("list", kind)
        objects: list[Document] = []
        query: dict[str, str | int] = {"limit": PAGE}
        query |= {"labelSelector": labels} if labels else {}
        query |= {"fieldSelector": fields} if fields else {}
        while True:
            answer = self._ask("GET", kind, asked=asked, query=query)
            document = _mapping(answer)
            items = document.get("items") or []
            if not isinstance(items, list) or not all(isinstance(x, Mapping) for x in items):
                raise Unreachable(f"cannot {asked}: the answer is no list", where=self.where)
            objects.extend(items)
            about = document.get("metadata") or {}
            more = str(about.get("continue") or "")
            if not more:
                return ObjectList(
                    tuple(objects), str(about.get("resourceVersion", "")), answer.date
                )
            if len(objects) >= MOST_OBJECTS:
                text = f"cannot {asked}: there are more than {MOST_OBJECTS:,}"
                raise Unreachable(text, where=self.where)
            query["continue"] = more

    def watch(self, kind: ObjectKind, labels: str, version: str) -> Watched:
        """Watch how objects change after a version. Raises ``TooOld``, or another ``BackendError``.

        Args:
            kind: of the objects.
            labels: a selector.
            version: of a list, or of a change.
        """
        query: dict[str, str | int] = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": WATCH_S,
        }
        query |= {"labelSelector": labels} if labels else {}
        asked = self._asked("watch", kind)
        path = self._path(kind)
        stream = self._transport.stream(path, asked=asked, query=query, silent_s=SILENT_S)
        return Watched(stream, asked, self.where)

    def may(self, verb: str, kind: ObjectKind) -> bool:
        """Whether we may do something, a verb as in a Role, with objects of a kind in this
        namespace. Raises ``BackendError``."""
        attributes = {
            "namespace": self.namespace,
            "verb": verb,
            "group": kind.group,
            "resource": kind.plural,
        }
        document = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        answer = self._transport.ask("POST", path, asked="ask for our rights", body=document)
        status = _mapping(answer).get("status")
        return isinstance(status, Mapping) and status.get("allowed") is True

    # -- paths ---------------------------------------------------------------------------------

    def _ask(
        self,
        method: str,
        kind: ObjectKind,
        name: str = "",
        *,
        asked: str,
        query: Mapping[str, str | int] | None = None,
        body: object = None,
        kind_of_body: str = "application/json",
        accept: str = "application/json",
    ) -> ServerAnswer:
        path = self._path(kind, name)
        return self._transport.ask(
            method, path, asked=asked, query=query, body=body, kind=kind_of_body, accept=accept
        )

    def _path(self, kind: ObjectKind, name: str = "") -> str:
        above = f"/namespaces/{quote(self.namespace, safe='')}" if kind.in_namespaces else ""
        path = f"/{kind.api}{above}/{kind.plural}"
        return f"{path}/{quote(name)}" if name else path

    def _asked(self, verb: str, kind: ObjectKind, name: str = "") -> str:
        named = f" {name!r}" if name else ""
        there = f" in {self.namespace!r}" if kind.in_namespaces else ""
        return f"{verb} {kind.plural}{named}{there}"


class Watched:
    """The changes of a watch as they come. A context manager; one thread, but for :meth:`end`."""

    def __init__(self, stream: Stream, asked: str, where: str) -> None:
        self._stream = stream
        self._asked = asked
        self._where = where
        self.date = stream.date

    def __enter__(self) -> Watched:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stream.__exit__(kind, error, traceback)

    def end(self) -> None:
        """End it from another thread."""
        self._stream.end()

    def changes(self) -> Iterator[Change]:
        """Yield what changes, until the server ends the watch, as it does every few minutes.

        Raises:
            TooOld: the server has forgotten that version: list anew.
            BackendError: it was cut, or says something that is none of that.
        """
        for line in self._stream.lines():
            try:
                event = json.loads(line)
                kind, item = str(event["type"]), event["object"]
            except (ValueError, LookupError, TypeError, RecursionError):
                text = f"cannot {self._asked}: the server sends what is no event"
                raise Unreachable(text, where=self._where) from None
            if kind == "ERROR":
                raise self._error(item)
            version = _version_of(item)
            if not version:
                text = f"cannot {self._asked}: the server sends an object without a version"
                raise Unreachable(text, where=self._where)
            yield Change(kind, item, version)

    def _error(self, status: object) -> Exception:
        code = status.get("code") if isinstance(status, Mapping) else None
        if not isinstance(code, int) or code < 400:  # nothing says that the version is good still
            return TooOld(f"cannot {self._asked}: the server gives up", where=self._where)
        return error_of(code, status, asked=self._asked, where=self._where)


def _mapping(answer: ServerAnswer) -> dict[str, Any]:
    return answer.document if isinstance(answer.document, dict) else {}


def _below(value: object, *keys: str) -> Document:
    """The mapping below some keys; empty if there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def _mappings(value: Document, key: str) -> list[Document]:
    there = value.get(key)
    return [x for x in there if isinstance(x, Mapping)] if isinstance(there, list) else []


def _texts(items: object, key: str) -> list[str]:
    there = items if isinstance(items, list) else []
    return [str(each[key]) for each in there if isinstance(each, Mapping) and key in each]


def _version_of(item: object) -> str:
    about = item.get("metadata") if isinstance(item, Mapping) else None
    return str(about.get("resourceVersion") or "") if isinstance(about, Mapping) else ""
