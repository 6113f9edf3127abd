"""Kubeconfigs: several files read as one, and what one context of them says.

As kubectl reads them: of what several files define the first counts, and relative paths begin at
the folder of the file that has them. A name that leads nowhere is an error with its place.
"""

from __future__ import annotations

import base64
import binascii
import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain as joined
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from dispatcher.errors import PermanentBackendError
from dispatcher.experiment.problems import ExperimentFileErrors
from dispatcher.experiment.source import Source
from dispatcher.experiment.yaml_text import read_source
from dispatcher.http_services.credentials import (
    Certificate,
    Credentials,
    FetchedProof,
    Fixed,
    FromFiles,
    Proof,
    basic,
    bearer,
    read_file,
)
from dispatcher.platforms.kubernetes.api.access import (
    ACCOUNT,
    LOOPBACK,
    NAMESPACE,
    Access,
    in_cluster,
    is_in_cluster,
)
from dispatcher.platforms.kubernetes.api.exec_plugin import VERSIONS, ExecPlugin
from tuners.plain_json import JsonPath


class Entry(NamedTuple):
    """A mapping of a kubeconfig, and the place where it stands."""

    source: Source
    path: JsonPath
    value: Mapping[str, Any]

    def where(self, *keys: str) -> str:
        """``file:line:column`` of a value in it."""
        return self.source.where((*self.path, *keys))

    def text(self, key: str) -> str:
        """The text of a key; empty if there is none."""
        value = self.value.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise PermanentBackendError(f"'{key}' must be a text", where=self.where(key))
        if "\0" in value:
            raise PermanentBackendError(f"'{key}' holds a NUL character", where=self.where(key))
        return value

    def below(self, key: str) -> Entry:
        """The mapping of a key; an empty one if there is none."""
        value = self.value.get(key)
        if value is None:
            value = {}
        if not isinstance(value, Mapping):
            raise PermanentBackendError(f"'{key}' must be a mapping", where=self.where(key))
        return Entry(self.source, (*self.path, key), value)

    def file(self, key: str) -> Path:
        """The path of a key, which begins at the folder of its file if it is a relative one."""
        written = self.text(key)
        try:
            path = Path(written).expanduser()
        except RuntimeError:
            text = f"'{key}' names a home folder that does not exist: {written!r}"
            raise PermanentBackendError(text, where=self.where(key)) from None
        return Path(self.source.origin).parent / path

    def data(self, key: str) -> bytes:
        """The bytes that a key has in base64."""
        try:
            return base64.b64decode(self.text(key), validate=True)
        except (ValueError, binascii.Error):
            raise PermanentBackendError(f"'{key}' is not base64", where=self.where(key)) from None

    def reader(self, key: str) -> Callable[[], bytes] | None:
        """Return a reader of ``KEY-data``, or of the file of ``KEY``; None if there is neither."""
        if self.text(f"{key}-data"):
            data = self.data(f"{key}-data")
            return lambda: data
        return partial(read_file, self.file(key)) if self.text(key) else None


def find_access(
    kubeconfig: Path | None = None,
    context: str = "",
    *,
    environment: Mapping[str, str] = os.environ,
    account: Path = ACCOUNT,
) -> Access:
    """Return how the cluster is reached: by a named kubeconfig, those of ``KUBECONFIG``,
    ``~/.kube/config``, or the account of the pod that this is, whichever there is first.

    Args:
        kubeconfig: the only file that counts; None: it is looked for.
        context: its name; empty: the current one of the files.
        environment: variables.
        account: the folder of a pod's account.

    Raises:
        PermanentBackendError: there is none, or it says nothing that can be used; with the place.
    """
    usual = Path(environment.get("HOME", "~")).expanduser() / ".kube/config"
    named = [Path(each) for each in environment.get("KUBECONFIG", "").split(os.pathsep) if each]
    if kubeconfig is not None:
        return read_access([kubeconfig], context)
    if named:
        there = [each for each in named if each.exists()]
        if not there:
            raise PermanentBackendError(
                f"there is no {named[0]}", hint="KUBECONFIG names it", where="KUBECONFIG"
            )
        return read_access(there, context)
    if usual.exists() or (context and not is_in_cluster(environment, account)):
        return read_access([usual], context)
    if context:
        raise PermanentBackendError(
            f"there is no context {context!r}: a pod has its account, and no kubeconfig",
            hint="leave 'context' out, or name a file by 'kubeconfig'",
        )
    return in_cluster(environment, account)


def read_access(files: Sequence[Path], context: str = "") -> Access:
    """Return what a context of some kubeconfigs says. Runs nothing.

    Args:
        files: the first that defines something counts.
        context: its name; empty: the current one.

    Raises:
        PermanentBackendError: a file, the context or what it names is not there or not usable.
    """
    entries = [_read(path) for path in files]
    chosen = context or next(filter(None, (e.text("current-context") for e in entries)), "")
    names = ", ".join(map(str, files))
    if not chosen:
        raise PermanentBackendError(
            "names no current context", hint=_known(entries, "contexts"), where=names
        )
    named = _named(entries, "contexts", "context", chosen, names)
    cluster = _named(entries, "clusters", "cluster", named.text("cluster"), named.where())
    user = Entry(named.source, named.path, {})
    if named.text("user"):
        user = _named(entries, "users", "user", named.text("user"), named.where())
    authority = cluster.reader("certificate-authority")
    verified = cluster.value.get("insecure-skip-tls-verify") is not True
    return Access(
        _server(cluster),
        _credentials(user, cluster),
        namespace=named.text("namespace") or NAMESPACE,
        authorities=authority().decode("ascii", "replace") if authority and verified else "",
        server_name=cluster.text("tls-server-name"),
        verified=verified,
        proxy=cluster.text("proxy-url"),
        origin=f"the context {chosen!r} of {names}",
    )


def _read(path: Path) -> Entry:
    text = read_file(path).decode("utf-8", "replace")
    try:
        source = read_source(text, str(path))
    except ExperimentFileErrors as error:
        first = error.errors[0]
        raise PermanentBackendError(first.message, hint=first.hint, where=first.where) from error
    if not isinstance(source.value, Mapping):
        raise PermanentBackendError("is no kubeconfig", where=str(path))
    return Entry(source, (), source.value)


def _named(entries: Sequence[Entry], list_: str, kind: str, name: str, where: str) -> Entry:
    """The first entry of that name in a list of the files."""
    for entry in entries:
        listed = entry.value.get(list_) or []
        if not isinstance(listed, list):
            raise PermanentBackendError(f"'{list_}' must be a list", where=entry.where(list_))
        for index, each in enumerate(listed):
            if isinstance(each, Mapping) and each.get("name") == name:
                return Entry(entry.source, (list_, index), each).below(kind)
    raise PermanentBackendError(
        f"there is no {kind} {name!r}", hint=_known(entries, list_), where=where
    )


def _known(entries: Sequence[Entry], list_: str) -> str:
    """A sentence with the names that there are."""
    names = [
        str(each.get("name"))
        for entry in entries
        for each in entry.value.get(list_) or []
        if isinstance(each, Mapping)
    ]
    return f"{list_} are: {', '.join(names[:20])}" if names else f"there are no {list_} at all"


def _server(cluster: Entry) -> str:
    server = cluster.text("server")
    try:
        parts = urlsplit(server)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host, parts = None, urlsplit("")
    if parts.scheme not in ("https", "http") or not host or parts.query or parts.username:
        raise PermanentBackendError(
            f"'server' must be https://HOST:PORT, not {_without_password(server)!r}",
            where=cluster.where("server"),
        )
    if parts.scheme == "http" and host not in LOOPBACK:
        raise PermanentBackendError(
            f"'server' is {server!r}, where anybody could read the keys of agents",
            hint="use https; http is for a proxy on this machine (kubectl proxy)",
            where=cluster.where("server"),
        )
    return server.rstrip("/")


def _without_password(server: str) -> str:
    """An address as it may be shown: what stands before ``@`` is a secret."""
    scheme, slashes, rest = server.rpartition("://")
    return f"{scheme}{slashes}…@{rest.rpartition('@')[2]}" if "@" in rest else server


def _credentials(user: Entry, cluster: Entry) -> Credentials:
    """Credentials of a user, in the order of precedence that kubectl has."""
    if "auth-provider" in user.value:
        name = user.below("auth-provider").text("name")
        raise PermanentBackendError(
            f"the auth-provider {name!r} is one that Kubernetes has given up in 1.26",
            hint="have the kubeconfig written anew: it then names a program ('exec')",
            where=user.where("auth-provider"),
        )
    for acts_as in ("as", "as-uid", "as-groups", "as-user-extra"):
        if user.value.get(acts_as):
            raise PermanentBackendError(
                "acts as somebody else, which is not supported",
                hint="name a context of your own by 'context'",
                where=user.where(acts_as),
            )
    chain, key = user.reader("client-certificate"), user.reader("client-key")
    if (chain is None) != (key is None):
        lacks = "client-key" if key is None else "client-certificate"
        raise PermanentBackendError(f"has no '{lacks}'", where=user.where())
    if user.text("tokenFile"):
        return FromFiles(user.file("tokenFile"), chain, key)
    token = user.text("token")
    authorization = bearer(token, user.where("token")) if token else ""
    if not authorization and user.text("username"):
        authorization = basic(user.text("username"), user.text("password"))
    if authorization and chain is not None and key is not None:
        return Fixed(Proof(authorization, Certificate(chain(), key())))
    if authorization:
        return Fixed(Proof(authorization))
    if chain is not None:
        return FromFiles(None, chain, key)
    if "exec" in user.value:
        return FetchedProof(_plugin(user.below("exec"), cluster).fetch, time.time)
    return Fixed()


def _plugin(entry: Entry, cluster: Entry) -> ExecPlugin:
    version, command = entry.text("apiVersion"), entry.text("command")
    if version not in VERSIONS:
        raise PermanentBackendError(
            f"speaks {version!r}, which is none of {', '.join(VERSIONS)}",
            hint="have the kubeconfig written anew by the program that wrote it",
            where=entry.where("apiVersion"),
        )
    if not command:
        raise PermanentBackendError("names no 'command'", where=entry.where())
    if entry.text("interactiveMode") == "Always":
        raise PermanentBackendError(
            f"{command} wants a terminal, which nobody watches here",
            hint="use a way to log in that asks nobody, such as the token of an account",
            where=entry.where("interactiveMode"),
        )
    if os.sep in command:
        command = str(entry.file("command"))
    arguments = entry.value.get("args") or []
    variables = entry.value.get("env") or []
    try:
        environment = {str(each["name"]): str(each["value"]) for each in variables}
    except (TypeError, KeyError):
        raise PermanentBackendError(
            "'env' must be a list of 'name' and 'value'", where=entry.where("env")
        ) from None
    if not isinstance(arguments, list):
        raise PermanentBackendError("'args' must be a list", where=entry.where("args"))
    for key, texts in (("args", map(str, arguments)), ("env", joined(*environment.items()))):
        if any("\0" in text for text in texts):
            raise PermanentBackendError(f"'{key}' holds a NUL character", where=entry.where(key))
    if any("=" in name for name in environment):
        raise PermanentBackendError("'env' has a name with '='", where=entry.where("env"))
    return ExecPlugin(
        version,
        command,
        tuple(map(str, arguments)),
        environment,
        hint=" ".join(entry.text("installHint").split()),
        cluster=_cluster(cluster) if entry.value.get("provideClusterInfo") is True else None,
        where=entry.where(),
    )


def _cluster(cluster: Entry) -> dict[str, Any]:
    """The cluster as a program that fetches credentials is given it."""
    authority = cluster.reader("certificate-authority")
    given: dict[str, Any] = {"server": cluster.text("server")}
    if authority is not None:
        given["certificate-authority-data"] = base64.b64encode(authority()).decode()
    for key in ("tls-server-name", "proxy-url"):
        if cluster.text(key):
            given[key] = cluster.text(key)
    if cluster.value.get("insecure-skip-tls-verify") is True:
        given["insecure-skip-tls-verify"] = True
    extensions = cluster.value.get("extensions") or []
    for each in extensions if isinstance(extensions, list) else []:
        if isinstance(each, Mapping) and each.get("name") == "client.authentication.k8s.io/exec":
            given["config"] = each.get("extension")
    return given
