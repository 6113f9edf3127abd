"""How an API server is reached: the result of reading a kubeconfig, or a pod's account."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dispatcher.errors import PermanentBackendError
from dispatcher.http_services.credentials import Credentials, FromFiles, read_file

#: Where a pod finds its account.
ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")

#: The namespace of those who name none.
NAMESPACE = "default"

#: Names of this machine.
LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Access:
    """How one API server is reached.

    Attributes:
        server: its address, ``https://HOST:PORT`` and perhaps a path.
        credentials: who we are.
        namespace: that of whoever names none.
        authorities: the certificates that its own must be signed by, PEM; empty: the system's.
        server_name: the name that its certificate must have; empty: that of the address.
        verified: whether its certificate is looked at.
        proxy: by which it is reached; empty: as the environment says.
        origin: where all of this was read, for people.
    """

    server: str
    credentials: Credentials = field(repr=False)
    namespace: str = NAMESPACE
    authorities: str = field(default="", repr=False)
    server_name: str = ""
    verified: bool = True
    proxy: str = ""
    origin: str = ""


def is_in_cluster(environment: Mapping[str, str] = os.environ, account: Path = ACCOUNT) -> bool:
    """Whether this is a pod with an account.

    Args:
        environment: variables.
        account: the folder of the account.
    """
    return bool(environment.get("KUBERNETES_SERVICE_HOST")) and (account / "token").exists()


def in_cluster(environment: Mapping[str, str] = os.environ, account: Path = ACCOUNT) -> Access:
    """The access of a pod by its account, whose token is renewed while the pod runs.

    Args:
        environment: variables.
        account: the folder of the account.

    Raises:
        PermanentBackendError: this is no pod, or it has no account.
    """
    host = environment.get("KUBERNETES_SERVICE_HOST", "")
    port = environment.get("KUBERNETES_SERVICE_PORT", "443")
    if not is_in_cluster(environment, account):
        raise PermanentBackendError(
            "no cluster is known here: there is no kubeconfig, and this is no pod with an account",
            hint="name a file by 'kubeconfig' or KUBECONFIG, or copy one to ~/.kube/config",
        )
    named = account / "namespace"
    return Access(
        f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        FromFiles(token=account / "token"),
        namespace=read_file(named).decode().strip() if named.exists() else NAMESPACE,
        authorities=read_file(account / "ca.crt").decode("ascii", "replace"),
        origin="the account of this pod",
    )
