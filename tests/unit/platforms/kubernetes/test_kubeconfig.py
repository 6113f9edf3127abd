"""Kubeconfigs are read as kubectl reads them, and each fault is a sentence with its place."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from dispatcher.errors import PermanentBackendError
from dispatcher.http_services.credentials import FetchedProof
from dispatcher.platforms.kubernetes.api.access import in_cluster
from dispatcher.platforms.kubernetes.api.errors import NotLoggedIn
from dispatcher.platforms.kubernetes.api.kubeconfig import find_access, read_access


def text64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def config(user: Mapping[str, Any] | None = None, **cluster: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "one",
        "clusters": [{"name": "c", "cluster": {"server": "https://10.0.0.1:6443", **cluster}}],
        "users": [{"name": "u", "user": user if user is not None else {"token": "t0"}}],
        "contexts": [{"name": "one", "context": {"cluster": "c", "user": "u", "namespace": "ns"}}],
    }


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def write_it(document: Any, name: str = "config") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(document if isinstance(document, str) else json.dumps(document, indent=1))
        return path

    return write_it


def test_a_context_is_a_cluster_a_user_and_a_namespace(write: Callable[..., Path]) -> None:
    cluster = {"certificate-authority-data": text64("PEM"), "tls-server-name": "api"}
    path = write(config({"token": "t0"}, **cluster))
    access = read_access([path])
    assert (access.server, access.namespace) == ("https://10.0.0.1:6443", "ns")
    assert (access.authorities, access.server_name, access.verified) == ("PEM", "api", True)
    assert access.credentials.proof() == ("Bearer t0", None)
    assert access.origin == f"the context 'one' of {path}"


def test_yaml_is_read_as_people_write_it(write: Callable[..., Path]) -> None:
    path = write(
        "apiVersion: v1\nkind: Config\ncurrent-context: dev\npreferences: {}\n"
        "clusters:\n- cluster:\n    server: https://k8s.example/k/clusters/1/\n  name: dev\n"
        "contexts:\n- context: {cluster: dev, user: me}\n  name: dev\n"
        "users:\n- name: me\n  user: {username: me, password: secret}\n"
    )
    access = read_access([path])
    assert (access.server, access.namespace) == ("https://k8s.example/k/clusters/1", "default")
    basic = base64.b64encode(b"me:secret").decode()
    assert access.credentials.proof().authorization == f"Basic {basic}"


def test_the_first_file_that_defines_something_counts(write: Callable[..., Path]) -> None:
    first = config({"token": "first"})
    second = config({"token": "second"})
    second["current-context"] = "two"
    second["users"].append({"name": "v", "user": {"token": "other"}})
    second["contexts"].append({"name": "two", "context": {"cluster": "c", "user": "v"}})
    files = [write(first, "a"), write(second, "b")]
    assert read_access(files).credentials.proof().authorization == "Bearer first"
    assert read_access(files, "two").credentials.proof().authorization == "Bearer other"
    assert read_access(files[::-1]).credentials.proof().authorization == "Bearer other"


def test_relative_paths_begin_at_the_folder_of_their_file(
    write: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("CA", "sub/ca.pem")
    write("CHAIN", "sub/me.pem")
    write("KEY", "sub/me.key")
    user = {"client-certificate": "me.pem", "client-key": str(tmp_path / "sub/me.key")}
    path = write(config(user, **{"certificate-authority": "ca.pem"}), "sub/config")
    monkeypatch.chdir("/")
    access = read_access([path])
    assert access.authorities == "CA"
    assert access.credentials.proof().certificate == (b"CHAIN", b"KEY")
    write("CHAIN 2", "sub/me.pem")  # its manager has renewed it
    assert access.credentials.proof().certificate == (b"CHAIN 2", b"KEY")


def test_a_token_file_is_read_for_each_request(write: Callable[..., Path]) -> None:
    token = write("one\n", "token")
    access = read_access([write(config({"tokenFile": "token", "token": "old"}))])
    assert access.credentials.proof().authorization == "Bearer one"
    token.write_text("two")
    assert access.credentials.proof().authorization == "Bearer two"
    token.unlink()
    with pytest.raises(NotLoggedIn, match="cannot be read: No such file"):
        access.credentials.proof()


def test_a_user_without_credentials_and_a_context_without_a_user(
    write: Callable[..., Path],
) -> None:
    document = config({})
    assert read_access([write(document)]).credentials.proof() == ("", None)
    del document["contexts"][0]["context"]["user"]
    access = read_access([write(document)])
    assert access.credentials.proof() == ("", None)
    assert not access.credentials.refused()


def test_which_files_are_looked_for(write: Callable[..., Path], tmp_path: Path) -> None:
    home = tmp_path / "home"
    named = write(config({"token": "named"}), "named")
    listed = write(config({"token": "listed"}), "listed")
    write(config({"token": "usual"}), "home/.kube/config")
    environment = {"HOME": str(home), "KUBECONFIG": f"{tmp_path}/none:{listed}::"}

    def token(variables: Mapping[str, str], path: Path | None = None) -> str:
        access = find_access(path, environment=variables, account=tmp_path / "none")
        return access.credentials.proof().authorization

    assert token(environment, named) == "Bearer named"
    assert token(environment) == "Bearer listed"
    assert token({"HOME": str(home)}) == "Bearer usual"
    with pytest.raises(PermanentBackendError, match="KUBECONFIG: there is no"):
        token({"HOME": str(home), "KUBECONFIG": str(tmp_path / "none")})


def test_a_pod_has_its_account_and_its_token_is_renewed(
    write: Callable[..., Path], tmp_path: Path
) -> None:
    account = tmp_path / "account"
    token = write("one", "account/token")
    write("CA", "account/ca.crt")
    write("trials\n", "account/namespace")
    pod = {"HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": "10.96.0.1"}
    access = find_access(environment=pod, account=account)
    assert (access.server, access.namespace) == ("https://10.96.0.1:443", "trials")
    assert access.authorities == "CA"
    assert access.credentials.proof().authorization == "Bearer one"
    token.write_text("two")
    assert access.credentials.proof().authorization == "Bearer two"
    six = {**pod, "KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443"}
    assert in_cluster(six, account).server == "https://[fd00::1]:6443"
    with pytest.raises(PermanentBackendError, match="a pod has its account, and no kubeconfig"):
        find_access(None, "x", environment=pod, account=account)


def test_no_cluster_at_all_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(PermanentBackendError, match="no cluster is known here"):
        find_access(environment={"HOME": str(tmp_path)}, account=tmp_path)
    with pytest.raises(PermanentBackendError, match="config: cannot be read: No such file"):
        find_access(None, "x", environment={"HOME": str(tmp_path)}, account=tmp_path)


def changed(*keys: Any, to: Any) -> dict[str, Any]:
    document = config()
    inner: Any = document
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = to
    return document


CLUSTER, USER, CONTEXT = ("clusters", 0, "cluster"), ("users", 0, "user"), ("contexts", 0)

LOGIN = {"apiVersion": "client.authentication.k8s.io/v1", "command": "login"}

BAD = {
    "no file of YAML": ("a: [", r"config:1:\d+: "),
    "a text": ("hello", "config: is no kubeconfig"),
    "a list": ("[]", "config: is no kubeconfig"),
    "empty": ("", "config: is no kubeconfig"),
    "no current context": (
        changed("current-context", to=""),
        "names no current context\n  contexts are: one",
    ),
    "unknown context": (
        changed("current-context", to="other"),
        "there is no context 'other'\n  contexts are: one",
    ),
    "unknown cluster": (
        changed(*CONTEXT, "context", to={"cluster": "d", "user": "u"}),
        r"config:\d+:\d+: there is no cluster 'd'\n  clusters are: c",
    ),
    "unknown user": (
        changed(*CONTEXT, "context", "user", to="v"),
        "there is no user 'v'\n  users are: u",
    ),
    "contexts no list": (changed("contexts", to={}), "there is no context 'one'"),
    "contexts a text": (changed("contexts", to="x"), r"config:\d+:\d+: 'contexts' must be a list"),
    "a context that is none": (
        changed(*CONTEXT, "context", to=[1]),
        r"config:\d+:\d+: 'context' must be a mapping",
    ),
    "no server": (changed(*CLUSTER, "server", to=""), "'server' must be https://HOST:PORT, not ''"),
    "no address": (changed(*CLUSTER, "server", to="k8s:6443"), "'server' must be https"),
    "a port that is none": (changed(*CLUSTER, "server", to="https://h:x"), "must be https"),
    "a number": (changed(*CLUSTER, "server", to=1), "'server' must be a text"),
    "http": (
        changed(*CLUSTER, "server", to="http://k8s.example:8080"),
        "where anybody could read the keys of agents",
    ),
    "a CA that is not there": (
        changed(*CLUSTER, "certificate-authority", to="none.pem"),
        "none.pem: cannot be read: No such file",
    ),
    "data that is none": (
        changed(*CLUSTER, "certificate-authority-data", to="***"),
        r"config:\d+:\d+: 'certificate-authority-data' is not base64",
    ),
    "half a certificate": (
        changed(*USER, to={"client-certificate-data": text64("x")}),
        r"config:\d+:\d+: has no 'client-key'",
    ),
    "the other half": (
        changed(*USER, to={"client-key-data": text64("x")}),
        "has no 'client-certificate'",
    ),
    "a token of several lines": (
        changed(*USER, to={"token": "a\nb"}),
        r"config:\d+:\d+: holds no token",
    ),
    "auth-provider": (
        changed(*USER, to={"auth-provider": {"name": "gcp"}}),
        "the auth-provider 'gcp' is one that Kubernetes has given up",
    ),
    "impersonation": (changed(*USER, "as", to="admin"), "acts as somebody else"),
    "exec of another version": (
        changed(*USER, to={"exec": {"apiVersion": "v1alpha1", "command": "x"}}),
        r"config:\d+:\d+: speaks 'v1alpha1', which is none of client.authentication.k8s.io/v1,",
    ),
    "exec without a command": (
        changed(*USER, to={"exec": {"apiVersion": "client.authentication.k8s.io/v1"}}),
        "names no 'command'",
    ),
    "exec that wants a terminal": (
        changed(
            *USER,
            to={
                "exec": {
                    "apiVersion": "client.authentication.k8s.io/v1",
                    "command": "login",
                    "interactiveMode": "Always",
                }
            },
        ),
        "login wants a terminal",
    ),
    "exec with variables that are none": (
        changed(
            *USER,
            to={
                "exec": {
                    "apiVersion": "client.authentication.k8s.io/v1",
                    "command": "login",
                    "env": {"A": "b"},
                }
            },
        ),
        "'env' must be a list of 'name' and 'value'",
    ),
    "an authority with a NUL": (
        config({}, **{"certificate-authority": "a\0b"}),
        r"config:\d+:\d+: 'certificate-authority' holds a NUL character",
    ),
    "an authority in nobody's home": (
        config({}, **{"certificate-authority": "~nobody-at-all/ca.pem"}),
        r"config:\d+:\d+: 'certificate-authority' names a home folder that does not exist",
    ),
    "a token file with a NUL": (
        config({"tokenFile": "a\0b"}),
        r"config:\d+:\d+: 'tokenFile' holds a NUL character",
    ),
    "a program with a NUL": (
        config({"exec": {**LOGIN, "command": "a\0b"}}),
        r"config:\d+:\d+: 'command' holds a NUL character",
    ),
    "an argument with a NUL": (
        config({"exec": {**LOGIN, "args": ["a\0b"]}}),
        r"config:\d+:\d+: 'args' holds a NUL character",
    ),
    "a variable with a NUL": (
        config({"exec": {**LOGIN, "env": [{"name": "A", "value": "a\0b"}]}}),
        r"config:\d+:\d+: 'env' holds a NUL character",
    ),
    "a variable that is two": (
        config({"exec": {**LOGIN, "env": [{"name": "A=B", "value": "c"}]}}),
        r"config:\d+:\d+: 'env' has a name with '='",
    ),
}


@pytest.mark.parametrize("document, sentence", BAD.values(), ids=BAD.keys())
def test_what_is_wrong_is_a_sentence_with_its_place(
    document: Any, sentence: str, write: Callable[..., Path]
) -> None:
    with pytest.raises(PermanentBackendError, match=sentence) as caught:
        read_access([write(document)])
    assert caught.value.where


def test_no_secret_is_in_an_error_or_a_repr(write: Callable[..., Path]) -> None:
    user = {"token": "S3CRET with blanks"}
    with pytest.raises(PermanentBackendError) as caught:
        read_access([write(config(user))])
    assert "S3CRET" not in str(caught.value)
    for server in ("https://me:S3CRET@10.0.0.1", "https://me:S3CRET@10.0.0.1:99999"):
        with pytest.raises(PermanentBackendError, match=r"…@10\.0\.0\.1") as caught:
            read_access([write(config(server=server))])
        assert "S3CRET" not in str(caught.value)
    for good in ({"token": "S3CRET"}, {"username": "me", "password": "S3CRET"}):
        assert "S3CRET" not in repr(read_access([write(config(good))]))


def test_http_is_for_a_proxy_on_this_machine(write: Callable[..., Path]) -> None:
    assert read_access([write(config(server="http://127.0.0.1:8001"))]).server.startswith("http:")


def test_an_exec_plugin_is_called_as_its_file_says(
    write: Callable[..., Path], tmp_path: Path
) -> None:
    """A command with a slash begins at the file's folder; nothing is run while it is read."""
    program = tmp_path / "sub/login"
    exec_ = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "./login",
        "args": ["--for", 7],
        "env": [{"name": "A", "value": "b"}],
        "interactiveMode": "IfAvailable",
        "provideClusterInfo": True,
    }
    path = write(config({"exec": exec_}, **{"certificate-authority-data": text64("PEM")}), "sub/c")
    access = read_access([path])
    assert isinstance(access.credentials, FetchedProof)
    program.write_text(
        "#!/bin/sh\n"
        'printf \'{"apiVersion": "client.authentication.k8s.io/v1", "status": {"token": "%s"}}\' '
        '"$*-$A"\n'
        f'printf %s "$KUBERNETES_EXEC_INFO" > {tmp_path}/info\n'
    )
    program.chmod(0o700)
    with pytest.raises(NotLoggedIn, match="holds no token"):  # "--for 7-b" has a blank
        access.credentials.proof()
    asked = json.loads((tmp_path / "info").read_text())
    assert asked["spec"]["cluster"] == {
        "server": "https://10.0.0.1:6443",
        "certificate-authority-data": text64("PEM"),
    }
    assert asked["spec"]["interactive"] is False
    assert os.environ.get("A") is None
