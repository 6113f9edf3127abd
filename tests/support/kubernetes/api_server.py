"""An API server over HTTPS that keeps objects, and judges what comes and what it answers."""

from __future__ import annotations

import contextlib
import json
import re
import ssl
import tempfile
import threading
import time
from collections.abc import Collection, Iterator
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.support.kubernetes.certificates import Authority, Pair
from tests.support.kubernetes.contract import complaints
from tests.support.kubernetes.crds import Crd
from tests.support.kubernetes.objects import Objects, Refusal, selects

_PATH = re.compile(
    r"/(?P<api>api/v1|apis/[^/]+/[^/]+)/namespaces/(?P<namespace>[^/]+)/(?P<plural>[a-z]+)"
    r"(?:/(?P<name>[^/]+))?(?:/(?P<sub>log))?"
)
_GROUP = re.compile(r"/apis/(?P<group>[^/]+)(?:/(?P<version>[^/]+))?")
_OF_CLUSTER = re.compile(r"/apis/(?P<api>[^/]+/[^/]+)/(?P<plural>[a-z]+)/(?P<name>[^/]+)")
TOKEN = "t0ken"

#: Where objects are kept that are in no namespace.
OF_CLUSTER = "default"


class ApiServer:
    """The server, and what a test may have it do.

    Attributes:
        asked: what it was asked, as ``VERB PATH``, watches as ``WATCH``.
        wrong: what the contract has against requests and answers; must stay empty.
        tokens: those that it takes.
        denied: what nobody may do: ``(verb, plural)``, as in a Role.
        faults: answers in place of the next ones: a status, or None for a connection that is cut,
            and whether the request is carried out before.
        bookmark_s: seconds between bookmarks.
        skew_s: how much its clock is ahead.
        logs: what pods have printed, by name.
        nodes: those that there are; None: nobody may list them.
        publishes: whether the fields of other kinds are published; real servers are late with it.
    """

    def __init__(
        self,
        version: str = "1.36",
        *,
        clients: Authority | None = None,
        crds: Collection[Crd] = (),
    ) -> None:
        self.authority = Authority()
        self.version = version
        self.objects = Objects(version, now=lambda: time.time() + self.skew_s, crds=crds)
        self.asked: list[str] = []
        self.wrong: list[str] = []
        self.tokens = {TOKEN}
        self.denied: set[tuple[str, str]] = set()
        self.faults: list[tuple[str, int | None, bool]] = []
        self.bookmark_s = 60.0
        self.skew_s = 0.0
        self.logs: dict[str, str] = {}
        self.nodes: list[dict[str, Any]] | None = None
        self.publishes = True
        self.cuts: list[bytes] = []  # each ends the watches asked before; what they send last
        server = _Server(("127.0.0.1", 0), _handler(self))
        server.daemon_threads = True
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        _load(tls, self.authority.sign("api.tests"))
        if clients is not None:
            tls.verify_mode = ssl.CERT_REQUIRED
            tls.load_verify_locations(cadata=clients.pem)
        server.socket = tls.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
        self._server = server
        self.address = f"https://127.0.0.1:{server.server_port}"
        self._thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def kubeconfig(self, folder: Path, *, namespace: str = "trials", **cluster: Any) -> Path:
        """Write one for it."""
        (folder / "ca.pem").write_text(self.authority.pem)
        named = {"server": self.address, "certificate-authority": "ca.pem", **cluster}
        context = {"cluster": "c", "user": "u", "namespace": namespace}
        document = {
            "current-context": "one",
            "clusters": [{"name": "c", "cluster": named}],
            "users": [{"name": "u", "user": {"token": TOKEN}}],
            "contexts": [{"name": "one", "context": context}],
        }
        path = folder / "kubeconfig"
        path.write_text(json.dumps(document))
        return path

    def fail(self, what: str, status: int | None, *, done: bool = False, times: int = 1) -> None:
        """Answer the next requests whose ``VERB PATH`` begins so with a status, or not at all."""
        self.faults += [(what, status, done)] * times

    def cut_watches(self, torn: bytes = b"") -> None:
        """Cut the watches that were asked for, after some bytes perhaps. They send nothing of what
        happens from now on."""
        with self.objects.lock:
            self.cuts.append(torn)
            self.objects.lock.notify_all()

    def close(self) -> None:
        """Stop serving."""
        self.cut_watches()
        self._server.shutdown()
        self._server.server_close()

    def judge(self, document: Any) -> list[str]:
        """What the contract has against an answer."""
        if "info" in document:  # of the fields of objects: there is no contract of this
            return []
        word = "Info" if "gitVersion" in document else document["kind"]
        if word == "NodeList":  # we have no contract of nodes
            return []
        for crd in self.objects.crds.values():
            if word == crd.word:
                return crd.complaints(document)
            if word == crd.list_word:
                found = complaints("ListMeta", document["metadata"])
                return found + [x for each in document["items"] for x in crd.complaints(each)]
        return [f"{word}: {each}" for each in complaints(word, document)]

    def discovered(self, group: str, version: str | None) -> Any:
        """What there is of a group, or of one version of it."""
        here = [x for x in self.objects.kinds.items() if x[1][0] == group]
        versions = sorted({api_version for _, (_, api_version, _) in here})
        if not versions or (version and f"{group}/{version}" not in versions):
            raise Refusal(404, "NotFound", "the server could not find the requested resource")
        if version is None:
            named = [{"groupVersion": x, "version": x.rpartition("/")[2]} for x in versions]
            about = {"name": group, "versions": named, "preferredVersion": named[0]}
            return {"kind": "APIGroup", "apiVersion": "v1", **about}
        usual = {"singularName": "", "namespaced": True, "verbs": ["create", "get", "list"]}
        resources = [
            {"name": plural, "kind": kind, **usual}
            for plural, (_, api_version, kind) in here
            if api_version == f"{group}/{version}"
        ]
        about = {"groupVersion": f"{group}/{version}", "resources": resources}
        return {"kind": "APIResourceList", "apiVersion": "v1", **about}

    def keep(self, crd: Crd, *bodies: dict[str, Any]) -> None:
        """Have objects of a kind from the beginning."""
        for body in bodies:
            space = "trials" if crd.in_namespaces else OF_CLUSTER
            self.objects.create(crd.plural, space, body)

    def published(self, path: str) -> Any:
        """The fields of objects: of a group and version, or of all of them."""
        about = {"info": {"title": "Kubernetes", "version": self.version}, "paths": {}}
        crds = self.objects.crds.values() if self.publishes else ()
        if path == "/openapi/v2":
            definitions = {k: v for each in crds for k, v in each.published.items()}
            return {"swagger": "2.0", **about, "definitions": definitions}
        here = [x for x in crds if path == f"/openapi/v3/apis/{x.api_version}"]
        if self.objects.old or not here:
            raise Refusal(404, "NotFound", "the server could not find the requested resource")
        schemas = {k: v for each in here for k, v in each.published.items()}
        return {"openapi": "3.0.0", **about, "components": {"schemas": schemas}}

    def of_cluster(self, path: str) -> Any:
        """An object that is in no namespace; None: the path is of no such one."""
        match = _OF_CLUSTER.fullmatch(path)
        crd = self.objects.crds.get(match["plural"]) if match else None
        if match is None or crd is None or crd.in_namespaces or match["api"] != crd.api_version:
            return None
        if ("get", crd.plural) in self.denied:
            text = f'{crd.plural} is forbidden: User "alice" cannot get resource "{crd.plural}"'
            raise Refusal(403, "Forbidden", f"{text} at the cluster scope")
        found = self.objects.get(crd.plural, OF_CLUSTER, match["name"])
        del found["metadata"]["namespace"]
        return found

    def count(self, what: str) -> int:
        """How many requests began so."""
        return sum(each.startswith(what) for each in self.asked)


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has gone, or does not trust us, is no news."""


def _load(tls: ssl.SSLContext, pair: Pair) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(pair.chain + pair.key)
        file.flush()
        tls.load_cert_chain(file.name)


def _handler(api: ApiServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, format: str, *args: Any) -> None:
            """Be silent."""

        def date_time_string(self, timestamp: float | None = None) -> str:
            return formatdate(api.objects.now(), usegmt=True)

        def do_GET(self) -> None:
            self.serve()

        def do_POST(self) -> None:
            self.serve()

        def do_PATCH(self) -> None:
            self.serve()

        def do_DELETE(self) -> None:
            self.serve()

        def serve(self) -> None:
            self.warnings: list[str] = []
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length)
            split = urlsplit(self.path)
            query = {key: values[-1] for key, values in parse_qs(split.query).items()}
            verb = "WATCH" if query.get("watch") else self.command
            what = f"{verb} {split.path}"
            with api.objects.lock:  # a watch that is counted is one that is cut
                api.asked.append(what)
                self.began = len(api.cuts)
                fault = next((each for each in api.faults if what.startswith(each[0])), None)
                if fault is not None:
                    with contextlib.suppress(ValueError):  # the test has just cleared them
                        api.faults.remove(fault)
            if fault is not None:
                if fault[2]:
                    with contextlib.suppress(Refusal):
                        self.perform(verb, split.path, query, body)
                if fault[1] is None:
                    self.close_connection = True
                    return
                text = {401: "Unauthorized", 429: "Too many requests"}.get(fault[1], "a fault")
                self.answer(fault[1], Refusal(fault[1], text, text, retryAfterSeconds=1).status)
                return
            try:
                self.authenticate()
                self.authorize(verb, split.path, query)
                if verb == "WATCH":
                    self.watch(split.path, query)
                else:
                    status, document = self.perform(verb, split.path, query, body)
                    self.answer(status, document)
            except Refusal as refusal:
                self.answer(refusal.code, refusal.status)

        def authenticate(self) -> None:
            bearer = self.headers.get("Authorization", "")
            if bearer.removeprefix("Bearer ") in api.tokens:
                return
            if isinstance(self.connection, ssl.SSLSocket) and self.connection.getpeercert():
                return
            raise Refusal(401, "Unauthorized", "Unauthorized")

        def authorize(self, verb: str, path: str, query: dict[str, str]) -> None:
            match = _PATH.fullmatch(path)
            if match is None:
                return
            word = {"POST": "create", "PATCH": "patch", "DELETE": "delete", "WATCH": "watch"}
            asked = word.get(verb, "get" if match["name"] else "list")
            resource = f"{match['plural']}/{match['sub']}" if match["sub"] else match["plural"]
            if (asked, resource) in api.denied:
                group = api.objects.kinds[match["plural"]][0]
                text = (
                    f'{match["plural"]} is forbidden: User "alice" cannot {asked} resource '
                    f'"{resource}" in API group "{group}" in the namespace "{match["namespace"]}"'
                )
                raise Refusal(403, "Forbidden", text)

        def perform(
            self, verb: str, path: str, query: dict[str, str], body: bytes
        ) -> tuple[int, Any]:
            if path == "/version":
                major, minor = api.version.split(".")
                text = f"v{api.version}.2"
                return 200, {
                    "major": major, "minor": f"{minor}+", "gitVersion": text, "gitCommit": "",
                    "gitTreeState": "clean", "buildDate": "", "goVersion": "", "compiler": "gc",
                    "platform": "linux/amd64",
                }  # fmt: skip
            if path == "/api/v1/nodes":
                return 200, self.listed_nodes(query.get("labelSelector", ""))
            document = self.read(verb, body)
            if path == "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews":
                return 201, self.review(document)
            if path.startswith("/openapi/"):
                return 200, api.published(path)
            if verb == "GET" and (found := api.of_cluster(path)) is not None:
                return 200, found
            if group := _GROUP.fullmatch(path):
                return 200, api.discovered(group["group"], group["version"])
            match = self.matched(path)
            plural, namespace = match["plural"], unquote(match["namespace"])
            name = unquote(match["name"] or "")
            objects = api.objects
            if match["sub"] == "log":
                objects.get("pods", namespace, name)
                lines = api.logs.get(name, "").splitlines(keepends=True)
                return 200, "".join(lines[-int(query.get("tailLines", 100)) :])
            if verb == "GET" and name:
                return 200, objects.get(plural, namespace, name)
            if verb == "GET":
                return 200, self.listed(plural, namespace, query)
            if verb == "POST":
                unknown = objects.dropped(plural, document)
                validation = "" if objects.old else query.get("fieldValidation", "")
                if unknown and validation == "Strict":
                    raise Refusal(400, "BadRequest", f'unknown field "{unknown[0]}"')
                self.warnings = [f'unknown field "{each}"' for each in unknown if validation]
                keep = query.get("dryRun") != "All"
                return 201, objects.create(plural, namespace, document, keep=keep)
            if verb == "PATCH" and "merge" in self.headers["Content-Type"]:
                return 200, objects.patch(plural, namespace, name, document)
            if verb == "PATCH":
                there = any(x["metadata"]["name"] == name for x in objects.all(plural, namespace))
                return 200 if there else 201, objects.apply(plural, namespace, name, document)
            return 200, objects.delete(plural, namespace, name, document)

        def matched(self, path: str) -> re.Match[str]:
            match = _PATH.fullmatch(path)
            known = api.objects.kinds.get(match["plural"]) if match else None
            if match is None or known is None or match["api"].partition("/")[2] != known[1]:
                raise Refusal(404, "NotFound", "the server could not find the requested resource")
            return match

        def read(self, verb: str, body: bytes) -> Any:
            if not body:
                return {}
            kind = self.headers.get("Content-Type")
            patches = ("application/apply-patch+yaml", "application/merge-patch+json")
            if kind not in (patches if verb == "PATCH" else ("application/json",)):
                raise Refusal(415, "UnsupportedMediaType", f"the body is {kind}")
            document = json.loads(body)
            if verb == "DELETE":
                api.wrong += complaints("DeleteOptions", document)
            return document

        def review(self, document: Any) -> Any:
            api.wrong += complaints("SelfSubjectAccessReview", document)
            about = document["spec"]["resourceAttributes"]
            sub = f"/{about['subresource']}" if "subresource" in about else ""
            known = api.objects.kinds.get(about["resource"], ("",))
            right = about["group"] == known[0] and about["namespace"] in api.objects.namespaces
            denied = (about["verb"], about["resource"] + sub) in api.denied
            return {**document, "status": {"allowed": right and not denied}}

        def listed_nodes(self, labels: str) -> Any:
            if api.nodes is None:
                text = 'nodes is forbidden: User "alice" cannot list resource "nodes" in API group '
                raise Refusal(403, "Forbidden", f'{text}"" at the cluster scope')
            items = [each for each in api.nodes if selects(labels, each)]
            return {"kind": "NodeList", "apiVersion": "v1", "metadata": {}, "items": items}

        def listed(self, plural: str, namespace: str, query: dict[str, str]) -> Any:
            objects = api.objects
            found = objects.all(plural, namespace, query.get("labelSelector", ""))
            for term in filter(None, query.get("fieldSelector", "").split(",")):
                key, _, value = term.partition("=")
                found = [each for each in found if _field(each, key) == value]
            start, version = 0, str(objects.version)
            if "continue" in query:
                version, _, text = query["continue"].partition("-")
                start = int(text)
                if int(version) < objects.forgotten and objects.old:
                    raise Refusal(410, "Expired", "the provided continue parameter is too old")
            limit = int(query.get("limit") or 0) or len(found) or 1
            about = {"resourceVersion": version}
            if start + limit < len(found):
                about["continue"] = f"{version}-{start + limit}"
            _, api_version, kind = objects.kinds[plural]
            items = found[start : start + limit]
            return {
                "kind": f"{kind}List", "apiVersion": api_version, "metadata": about, "items": items,
            }  # fmt: skip

        def watch(self, path: str, query: dict[str, str]) -> None:
            match = self.matched(path)
            plural, namespace = match["plural"], unquote(match["namespace"])
            labels = query.get("labelSelector", "")
            version = int(query["resourceVersion"])
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            end = time.monotonic() + float(query.get("timeoutSeconds", 60))
            marked = time.monotonic()
            while time.monotonic() < end:
                try:
                    with api.objects.lock:
                        if len(api.cuts) > self.began:
                            break
                        newest = api.objects.version
                        events = list(api.objects.after(version, plural, namespace, labels))
                except Refusal as refusal:
                    self.chunk({"type": "ERROR", "object": refusal.status})
                    break
                for event in events:
                    self.chunk({"type": event.type, "object": event.object})
                    version = event.version
                marks = query.get("allowWatchBookmarks") == "true"
                if marks and time.monotonic() - marked >= api.bookmark_s:
                    marked = time.monotonic()
                    version = newest  # what has happened since then is sent in the next round
                    _, api_version, kind = api.objects.kinds[plural]
                    about = {"resourceVersion": str(version)}
                    mark = {"kind": kind, "apiVersion": api_version, "metadata": about}
                    self.chunk({"type": "BOOKMARK", "object": mark})
                with api.objects.lock:
                    quiet = api.objects.version == version or not events
                    if quiet and len(api.cuts) == self.began:
                        api.objects.lock.wait(min(0.05, api.bookmark_s))
            if len(api.cuts) > self.began:
                torn = api.cuts[self.began]
                self.wfile.write(b"%x\r\n%s" % (len(torn) + 9, torn))
                self.close_connection = True
                return
            self.wfile.write(b"0\r\n\r\n")

        def chunk(self, event: dict[str, Any]) -> None:
            if event["type"] != "BOOKMARK":
                api.wrong += complaints("WatchEvent", event)
                api.wrong += api.judge(event["object"])
            line = json.dumps(event).encode() + b"\n"
            self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
            self.wfile.flush()

        def answer(self, status: int, document: Any) -> None:
            is_text = isinstance(document, str)
            if not is_text:
                api.wrong += api.judge(document)
            content = document.encode() if is_text else json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/plain" if is_text else "application/json")
            self.send_header("Content-Length", str(len(content)))
            if status == 429:
                self.send_header("Retry-After", "2")
            for each in self.warnings:
                self.send_header("Warning", f'299 - "{each}"')
            self.end_headers()
            self.wfile.write(content)

    return Handler


def _field(each: dict[str, Any], path: str) -> str:
    value: Any = each
    for key in path.split("."):
        value = value.get(key, "") if isinstance(value, dict) else ""
    return str(value)


@contextlib.contextmanager
def serving(
    version: str = "1.36", *, clients: Authority | None = None, crds: Collection[Crd] = ()
) -> Iterator[ApiServer]:
    """A server for a while; what the contract has against anything is a failure of the test."""
    server = ApiServer(version, clients=clients, crds=crds)
    try:
        yield server
    finally:
        server.close()
    assert not server.wrong, server.wrong[:5]
