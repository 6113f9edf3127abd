"""The client over HTTPS: what it asks, and what it makes of every kind of answer."""

from __future__ import annotations

import http.server
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from dispatcher.errors import PassingBackendError, PermanentBackendError
from dispatcher.http_services.credentials import Certificate, Fixed, FromFiles, Proof
from dispatcher.platforms.kubernetes.api import server as server_module
from dispatcher.platforms.kubernetes.api import transport as transport_module
from dispatcher.platforms.kubernetes.api.access import Access
from dispatcher.platforms.kubernetes.api.errors import (
    AlreadyThere,
    Busy,
    Conflict,
    Invalid,
    NotAllowed,
    NotLoggedIn,
    NotThere,
    OverQuota,
    TooOld,
    Unreachable,
    Untrusted,
    error_of,
)
from dispatcher.platforms.kubernetes.api.kubeconfig import read_access
from dispatcher.platforms.kubernetes.api.server import JOBS, PODS, SECRETS, ApiServer
from dispatcher.platforms.kubernetes.api.transport import Transport
from tests.support.kubernetes import api_server
from tests.support.kubernetes.certificates import Authority
from tests.support.kubernetes.crds import published

Served = api_server.ApiServer


def job(name: str = "j1", **spec: Any) -> dict[str, Any]:
    container = {"name": "agent", "image": "python", "command": ["true"]}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": {"bequeath/service": "s"}},
        "spec": {"backoffLimit": 0, "template": template, **spec},
    }


def secret(name: str = "s1", **values: str) -> dict[str, Any]:
    about = {"name": name}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": about, "stringData": values}


def test_the_version_is_asked_for(client: ApiServer, version: str) -> None:
    major, minor = map(int, version.split("."))
    assert client.version() == (major, minor, f"v{version}.2")


def test_objects_are_created_read_applied_and_deleted(client: ApiServer, there: Served) -> None:
    assert client.create(JOBS, job()).document["metadata"]["uid"]
    assert client.get(JOBS, "j1")["spec"]["backoffLimit"] == 0
    client.apply(SECRETS, secret(a="1"))
    client.apply(SECRETS, secret(a="2"))
    assert client.get(SECRETS, "s1")["stringData"] == {"a": "2"}
    client.delete(JOBS, "j1")
    assert "deletionTimestamp" in client.get(JOBS, "j1")["metadata"]  # its pods go first
    client.delete(SECRETS, "s1")
    with pytest.raises(NotThere, match="cannot read secrets 's1' in 'trials': secrets"):
        client.get(SECRETS, "s1")
    with pytest.raises(NotThere):
        client.delete(SECRETS, "s1")


def test_a_dry_run_leaves_nothing(client: ApiServer, there: Served) -> None:
    client.create(JOBS, job(), dry_run=True)
    assert there.objects.all("jobs") == []
    with pytest.raises(Invalid):
        client.create(JOBS, job(backoffLimit=-1), dry_run=True)


def test_a_misspelt_field_is_a_warning_where_servers_know_it(
    client: ApiServer, version: str
) -> None:
    answer = client.create(JOBS, job(backofLimit=0))
    expected = {"1.20": (), "1.36": ('299 - "unknown field "spec.backofLimit""',)}
    assert answer.warnings == expected[version]


@pytest.mark.parametrize("served", ["1.20", "1.36"])
def test_the_fields_of_a_kind_are_those_of_its_definition(served: str, tmp_path: Path) -> None:
    """In one document of all groups where a server has no other. Mutation: those of another group,
    or of another version."""
    crd = published("kubeflow-v1", "pytorchjobs")
    with api_server.serving(served, crds=[crd]) as there:
        made = ApiServer(read_access([there.kubeconfig(tmp_path)]))
        assert list(made.schemas("apis/kubeflow.org/v1")) == ["PyTorchJob"]
        schema = made.schemas("apis/kubeflow.org/v1")["PyTorchJob"]
        assert "runPolicy" in schema["properties"]["spec"]["properties"]
        assert made.schemas("apis/kubeflow.org/v2") == {}
        assert made.schemas("apis/other.org/v1") == {}
        made.close()


def test_a_name_is_taken_once(client: ApiServer) -> None:
    client.create(JOBS, job())
    with pytest.raises(AlreadyThere, match="already exists"):
        client.create(JOBS, job())
    client.delete(JOBS, "j1")
    with pytest.raises(Conflict, match="is being deleted"):  # try again, then it may be free
        client.create(JOBS, job())


REFUSALS: list[tuple[int, type[Exception], type[Exception]]] = [
    (400, Invalid, PermanentBackendError),
    (401, NotLoggedIn, PermanentBackendError),
    (403, NotAllowed, PermanentBackendError),
    (404, NotThere, PermanentBackendError),
    (409, Conflict, PassingBackendError),
    (410, TooOld, PassingBackendError),
    (422, Invalid, PermanentBackendError),
    (429, Busy, PassingBackendError),
    (500, Busy, PassingBackendError),
    (503, Busy, PassingBackendError),
    (302, Unreachable, PassingBackendError),
]


@pytest.mark.parametrize("status, kind, base", REFUSALS)
@pytest.mark.parametrize("version", ["1.36"])
def test_each_refusal_is_of_its_kind(
    status: int, kind: type[Exception], base: type[Exception], client: ApiServer, there: Served
) -> None:
    there.fail("GET", status)
    with pytest.raises(kind) as caught:
        client.get(JOBS, "j1")
    assert isinstance(caught.value, base)
    assert f"{there.address.removeprefix('https://')}: cannot read jobs 'j1'" in str(caught.value)


@pytest.mark.parametrize("version", ["1.36"])
def test_a_server_may_ask_for_a_pause(client: ApiServer, there: Served) -> None:
    there.fail("GET", 429)
    with pytest.raises(Busy) as caught:
        client.get(JOBS, "j1")
    assert caught.value.retry_after_s == 2.0


def test_a_quota_is_waited_for_and_a_missing_right_is_not(client: ApiServer, there: Served) -> None:
    there.objects.quota["jobs"] = 1
    client.create(JOBS, job())
    with pytest.raises(OverQuota, match="exceeded quota"):
        client.create(JOBS, job("j2"))
    there.denied.add(("create", "jobs"))
    with pytest.raises(NotAllowed, match="cannot create resource") as caught:
        client.create(JOBS, job("j2"))
    assert "bequeath kubernetes rights" in caught.value.hint


def test_rights_are_asked_for(client: ApiServer, there: Served) -> None:
    there.denied.add(("delete", "jobs"))
    asked = [("create", JOBS), ("delete", JOBS), ("list", PODS)]
    assert [client.may(*each) for each in asked] == [True, False, True]


def test_lists_come_in_pages(
    client: ApiServer, there: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "PAGE", 2)
    for index in range(5):
        client.create(JOBS, job(f"j{index}"))
    client.create(JOBS, job("other") | {"metadata": {"name": "other"}})
    there.asked.clear()
    listed = client.list(JOBS, "bequeath/service=s")
    assert [each["metadata"]["name"] for each in listed.objects] == [f"j{i}" for i in range(5)]
    assert len(there.asked) == 3
    assert listed.version == str(there.objects.version)
    monkeypatch.setattr(server_module, "MOST_OBJECTS", 3)
    with pytest.raises(Unreachable, match="more than 3"):
        client.list(JOBS, "")


def test_a_watch_tells_what_changes_until_it_is_ended(client: ApiServer, there: Served) -> None:
    client.create(JOBS, job("before"))
    version = client.list(JOBS, "").version
    seen = []
    with client.watch(JOBS, "bequeath/service=s", version) as watched:
        client.create(JOBS, job("j1"))
        client.create(JOBS, job("other") | {"metadata": {"name": "other"}})
        there.objects.change("jobs", "trials", "j1", lambda x: x.update(status={"active": 1}))
        there.objects.remove("jobs", "trials", "j1")
        for change in watched.changes():
            seen.append((change.kind, change.object["metadata"]["name"]))
            if change.kind == "DELETED":
                threading.Timer(0.1, watched.end).start()
    assert seen == [("ADDED", "j1"), ("MODIFIED", "j1"), ("DELETED", "j1")]


@pytest.mark.parametrize("version", ["1.36"])
def test_an_end_from_another_thread_does_not_wait_for_the_next_line(
    client: ApiServer, there: Served
) -> None:
    with client.watch(JOBS, "", "100") as watched:
        threading.Timer(0.2, watched.end).start()
        started = time.monotonic()
        assert list(watched.changes()) == []
        assert time.monotonic() - started < 100
        watched.end()  # again: nothing


@pytest.mark.parametrize("version", ["1.36"])
def test_bookmarks_carry_the_version_on(client: ApiServer, there: Served) -> None:
    there.bookmark_s = 0.05
    client.create(SECRETS, secret())
    with client.watch(JOBS, "", "100") as watched:
        change = next(watched.changes())
    assert (change.kind, change.version) == ("BOOKMARK", str(there.objects.version))


def test_a_version_that_is_forgotten_is_an_error_of_its_own(
    client: ApiServer, there: Served
) -> None:
    client.create(JOBS, job())
    there.objects.forget()
    with client.watch(JOBS, "", "100") as watched, pytest.raises(TooOld, match="too old resource"):
        list(watched.changes())
    there.fail("WATCH", 410)
    with pytest.raises(TooOld):
        client.watch(JOBS, "", "100")


@pytest.mark.parametrize("version", ["1.36"])
@pytest.mark.parametrize("torn", [b"", b'{"type": "ADDED", "obj'])
def test_a_watch_that_is_cut_is_no_end(torn: bytes, client: ApiServer, there: Served) -> None:
    with client.watch(JOBS, "", "100") as watched:
        there.cut_watches(torn)
        with pytest.raises(Unreachable, match="cannot watch jobs in 'trials'"):
            list(watched.changes())


@pytest.mark.parametrize("version", ["1.36"])
@pytest.mark.parametrize(
    "line, sentence",
    [
        (b"nonsense\n", "what is no event"),
        (b"[]\n", "what is no event"),
        (b"[" * 50_000 + b"\n", "what is no event"),
        (b'{"type": "ADDED"}\n', "what is no event"),
        (b'{"type": "ADDED", "object": {}}\n', "without a version"),
        (b'{"type": "ERROR", "object": {}}\n', "the server gives up"),
        (b'{"type": "ERROR", "object": {"code": 500, "message": "etcd"}}\n', "etcd"),
        (b"x" * 300_000, "a line has more than"),
    ],
)
def test_what_is_no_event_is_an_error(
    line: bytes,
    sentence: str,
    client: ApiServer,
    there: Served,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transport_module, "MOST_LINE_BYTES", 200_000)
    with client.watch(JOBS, "", "100") as watched:
        there.cut_watches(line)
        with pytest.raises(PassingBackendError, match=sentence):
            list(watched.changes())


@pytest.mark.parametrize("version", ["1.36"])
def test_what_was_done_and_not_answered_may_be_asked_again(
    client: ApiServer, there: Served
) -> None:
    there.fail("POST", 500, done=True)
    with pytest.raises(Busy):
        client.create(JOBS, job())
    with pytest.raises(AlreadyThere):
        client.create(JOBS, job())
    there.fail("POST", None, done=True)  # the connection breaks
    with pytest.raises(Unreachable):
        client.create(JOBS, job("j2"))
    assert len(there.objects.all("jobs")) == 2


@pytest.mark.parametrize("version", ["1.36"])
def test_a_kept_connection_that_has_died_is_no_fault(client: ApiServer, there: Served) -> None:
    """But for orders to create: nobody knows whether those were carried out."""
    client.version()
    there.fail("GET", None)
    client.version()
    there.fail("GET", None, times=2)
    with pytest.raises(Unreachable):
        client.version()


@pytest.mark.parametrize("version", ["1.36"])
def test_an_answer_has_a_bound(
    client: ApiServer, there: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.create(SECRETS, secret(a="x" * 5000))
    monkeypatch.setattr(transport_module, "MOST_BYTES", 4000)
    with pytest.raises(Unreachable, match="the answer has more than"):
        client.get(SECRETS, "s1")
    monkeypatch.undo()
    assert client.get(SECRETS, "s1")


# -- who we are, and whom we trust -----------------------------------------------------------------


@pytest.mark.parametrize("version", ["1.36"])
def test_a_token_that_was_renewed_meanwhile(there: Served, tmp_path: Path) -> None:
    """Read again after a refusal; one that stays refused is a sentence."""
    token = tmp_path / "token"
    token.write_text("old")
    reads: list[str] = []

    class Renewed(FromFiles):
        def proof(self) -> Proof:
            proof = super().proof()
            reads.append(proof.authorization)
            token.write_text(api_server.TOKEN)  # by the kubelet, a moment after
            return proof

    access = Access(there.address, Renewed(token=token), "trials", there.authority.pem)
    client = ApiServer(access)
    assert client.list(JOBS, "").objects == ()
    assert reads == ["Bearer old", f"Bearer {api_server.TOKEN}"]
    there.tokens.clear()
    with pytest.raises(NotLoggedIn, match="Unauthorized") as caught:
        client.list(JOBS, "")
    assert "log in" in caught.value.hint
    client.close()


def test_a_certificate_says_who_we_are_and_may_change() -> None:
    clients = Authority()
    with api_server.serving(clients=clients) as there:
        pair = [Certificate(*clients.sign("me"))]

        class Changing(FromFiles):
            def proof(self) -> Proof:
                return Proof("", pair[0])

        client = ApiServer(Access(there.address, Changing(), "trials", there.authority.pem))
        client.create(JOBS, job())
        pair[0] = Certificate(*clients.sign("me"))
        client.get(JOBS, "j1")
        pair[0] = Certificate(*Authority().sign("me"))  # of somebody else
        with pytest.raises(Unreachable):
            client.get(JOBS, "j1")
        pair[0] = Certificate(b"no", b"certificate")
        with pytest.raises(NotLoggedIn, match="cannot be used: they are no PEM"):
            client.get(JOBS, "j1")
        pair[0] = Certificate(*clients.sign("me", passphrase=b"secret"))
        with pytest.raises(NotLoggedIn, match="the key has a passphrase"):
            client.get(JOBS, "j1")
        pair[0] = Certificate(b"nothing", b"nothing")
        with pytest.raises(NotLoggedIn, match="the client's certificate and its key"):
            client.get(JOBS, "j1")
        client.close()


def access_to(there: Served, **more: Any) -> Access:
    fixed = Fixed(Proof(f"Bearer {api_server.TOKEN}"))
    given = {"authorities": there.authority.pem, "namespace": "trials", **more}
    return Access(there.address, fixed, **given)


@pytest.mark.parametrize("version", ["1.36"])
def test_a_server_that_we_do_not_trust_gets_no_token(there: Served) -> None:
    for wrong in (
        {"authorities": Authority().pem},
        {"authorities": ""},
        {"server_name": "somebody.else"},
    ):
        client = ApiServer(access_to(there, **wrong))
        with pytest.raises(Untrusted, match="certificate is not trusted"):
            client.version()
        client.close()
    assert there.asked == []
    for right in ({"server_name": "api.tests"}, {"authorities": "", "verified": False}):
        client = ApiServer(access_to(there, **right))
        assert client.version().minor == 36
        client.close()
    with pytest.raises(PermanentBackendError, match="its certificate authority is no certificate"):
        ApiServer(access_to(there, authorities="nonsense")).version()


@pytest.mark.parametrize("version", ["1.36"])
def test_a_server_that_is_not_there(there: Served) -> None:
    port = there.address.rpartition(":")[2]
    there.close()
    client = ApiServer(access_to(there))
    with pytest.raises(Unreachable, match=f"127.0.0.1:{port}: cannot ask for its version: no an"):
        client.version()
    missing = ApiServer(Access("https://no-such-host.invalid", Fixed()))
    with pytest.raises(Unreachable, match=r"no-such-host\.invalid: cannot ask"):
        missing.version()


@pytest.mark.parametrize("version", ["1.36"])
def test_a_server_that_says_nothing(
    client: ApiServer, there: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "SILENT_S", 0.3)
    with client.watch(JOBS, "", "100") as watched, pytest.raises(Unreachable):
        list(watched.changes())


@pytest.mark.parametrize("version", ["1.36"])
def test_a_proxy_is_taken_as_it_is_named(there: Served) -> None:
    """By the kubeconfig, else by the environment; NO_PROXY is heeded."""
    asked = []

    class Proxy(http.server.BaseHTTPRequestHandler):
        def do_CONNECT(self) -> None:
            asked.append((self.path, self.headers.get("Proxy-Authorization")))
            self.send_error(407)

        def log_message(self, format: str, *args: object) -> None:
            """Be silent."""

    proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    thread = threading.Thread(target=proxy.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    by = f"http://me:pass@127.0.0.1:{proxy.server_port}"
    netloc = there.address.removeprefix("https://")
    cases = [({}, by), ({"HTTPS_PROXY": by}, ""), ({"https_proxy": by, "NO_PROXY": "10.0.0.1"}, "")]
    for environment, named in cases:
        access = access_to(there, proxy=named)
        client = ApiServer(access, transport=Transport(access, environment))
        with pytest.raises(Unreachable, match="by its proxy") as caught:
            client.version()
        assert "pass" not in str(caught.value)
        assert asked.pop() == (netloc, "Basic bWU6cGFzcw==")
    access = access_to(there)
    unproxied = Transport(access, {"HTTPS_PROXY": by, "NO_PROXY": "127.0.0.1,example.com"})
    assert ApiServer(access, transport=unproxied).version().minor == 36
    unproxied.close()
    with pytest.raises(PermanentBackendError, match="socks5, and only http"):
        ApiServer(access_to(there, proxy="socks5://127.0.0.1:1080")).version()
    proxy.shutdown()
    proxy.server_close()
    thread.join()


@pytest.mark.parametrize("version", ["1.36"])
def test_the_namespace_is_that_of_the_context_unless_it_is_named(
    there: Served, tmp_path: Path
) -> None:
    access = read_access([there.kubeconfig(tmp_path)])
    assert ApiServer(access).namespace == "trials"
    client = ApiServer(access, "nowhere")
    with pytest.raises(NotThere, match="cannot list jobs in 'nowhere': namespaces \"nowhere\" not"):
        client.list(JOBS, "")
    client.close()


_RIGHTS = 'jobs is forbidden: User "a" cannot create resource "jobs" in API group "batch"'


@pytest.mark.parametrize(
    "text",
    [
        'admission webhook "validator.pytorchjob.training-operator.kubeflow.org" denied the '
        "request: spec.pytorchReplicaSpecs[Master]: Required value",
        'pods "a" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true',
        'pods "a" is forbidden: error looking up service account trials/b: not found',
        "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no GPUs here",
    ],
)
def test_who_has_a_say_in_an_object_is_no_matter_of_rights(text: str) -> None:
    """Mutation: people whose object a webhook refuses are offered a Role."""
    refused = error_of(403, {"reason": "Forbidden", "message": text}, asked="ask", where="here")
    assert isinstance(refused, Invalid)
    assert refused.hint == ""
    missing = error_of(403, {"reason": "Forbidden", "message": _RIGHTS}, asked="ask", where="here")
    assert isinstance(missing, NotAllowed)
    assert "prints the Role" in missing.hint
