"""Faults of a weights root, by whether they pass by themselves."""

from __future__ import annotations

from dispatcher.errors import PassingBackendError, PermanentBackendError


def kind_of(error: Exception) -> type[PassingBackendError | PermanentBackendError]:
    """Choose the error to raise: passing for a file system that lags, or a server that is away,
    since the next sweep asks again; permanent for one that refuses access."""
    from trial_runtime.errors import StaleWeights, StorageDenied, StorageError, StorageReadOnly
    from trial_runtime.weights.remote.faults import RemoteUnavailable

    passing = isinstance(error, StaleWeights | RemoteUnavailable | StorageError)
    passing = passing and not isinstance(error, StorageDenied | StorageReadOnly)
    return PassingBackendError if passing else PermanentBackendError
