"""Which faults of a weights root pass by themselves."""

from __future__ import annotations

from dispatcher.errors import PassingBackendError, PermanentBackendError


def kind_of(error: Exception) -> type[PassingBackendError | PermanentBackendError]:
    """A file system that lags or stumbles, or a server that is away, is asked again by the next
    sweep; one that lets us do nothing there is for people to mend."""
    from trial_runtime.errors import StaleWeights, StorageDenied, StorageError, StorageReadOnly
    from trial_runtime.weights.remote.faults import RemoteUnavailable

    passing = isinstance(error, StaleWeights | RemoteUnavailable | StorageError)
    passing = passing and not isinstance(error, StorageDenied | StorageReadOnly)
    return PassingBackendError if passing else PermanentBackendError
