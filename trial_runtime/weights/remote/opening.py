"""From a root's URL to a file system of fsspec, with connections that do not hang for ever."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from trial_runtime.weights.remote.address import BadRoot, RemoteRoot, demand_package
from trial_runtime.weights.remote.credentials import resolve

SFTP: Final = frozenset({"sftp", "ssh"})

#: Defaults of ``weightsRootOptions``: an endpoint that is gone has to be noticed.
_DEFAULTS: Final[dict[str, dict[str, Any]]] = {
    "config_kwargs": {
        "connect_timeout": 10,
        "read_timeout": 60,
        "retries": {"max_attempts": 2},
    }
}


def open_filesystem(root: RemoteRoot) -> tuple[Any, str]:
    """A file system of its own for this caller, and the path of the experiment's place in it.

    Looks references up; may connect.

    Raises:
        MissingExtra: a package is missing.
        BadRoot: the options do not fit, or a reference leads nowhere.
        Exception: one of :func:`~trial_runtime.weights.remote.faults.known`.
    """
    demand_package(root.protocol)
    options = resolve(root.options)
    try:
        filesystem, base = _open(root, options)
    except TypeError as error:
        raise BadRoot(
            f"weightsRootOptions do not fit: {error}",
            hint=f"they are handed to fsspec's file system for {root.protocol}://",
            where=root.url,
        ) from error
    place = base.rstrip("/")
    return filesystem, f"{place}/{root.scope}" if root.scope else place


def _open(root: RemoteRoot, options: Mapping[str, Any]) -> tuple[Any, str]:
    if root.protocol in SFTP:
        from trial_runtime.weights.remote.sftp import checked_sftp

        sftp = checked_sftp()
        arguments = {**sftp._get_kwargs_from_urls(root.url), **options}
        return sftp(skip_instance_cache=True, **arguments), sftp._strip_protocol(root.url)
    import fsspec

    if root.protocol in ("s3", "s3a"):
        options = {**_DEFAULTS, **options}
    opened: tuple[Any, str] = fsspec.core.url_to_fs(root.url, skip_instance_cache=True, **options)
    return opened
