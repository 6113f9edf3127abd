"""Claims of save paths: each canonical path belongs to one trial. Paths are relative to the weights
root, with ``/``."""

from dispatcher.core.ids import TrialId
from dispatcher.core.model import State


def claim(state: State, trial: TrialId, path: str) -> str | None:
    """Enter the claim, or return why it is refused, naming the owner.

    Args:
        state: changed in place, unless the claim is refused.
        trial: the new owner.
        path: canonical, relative to the weights root.
    """
    owner = state.claims.get(path)
    if owner is not None:
        return f"save path {path!r} belongs to trial {owner} already"
    folders = list(_folders_above(path))
    for folder in folders:
        owner = state.claims.get(folder)
        if owner is not None:
            return f"save path {path!r} lies inside {folder!r}, the save path of trial {owner}"
    owner = state.claim_folders.get(path)
    if owner is not None:
        return f"save path {path!r} holds the save path of trial {owner}"
    state.claims[path] = trial
    for folder in folders:
        state.claim_folders.setdefault(folder, trial)
    return None


def owner_of(state: State, path: str) -> TrialId | None:
    """The trial whose save path this is, or in whose save path it lies."""
    owner = state.claims.get(path)
    if owner is not None:
        return owner
    for folder in _folders_above(path):
        owner = state.claims.get(folder)
        if owner is not None:
            return owner
    return None


def _folders_above(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:i]) for i in range(len(parts) - 1, 0, -1)]
