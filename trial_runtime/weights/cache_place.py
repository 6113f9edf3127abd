"""A name of 0.1.0, for processes of it that go on while this is installed; goes with 0.3."""

import trial_runtime.weights.former  # noqa: F401 - before all else


def cache_for(folder: str) -> None:
    """None: readers that such a process has in memory ask a cache for what ours has no more, and
    read the files themselves where there is none."""
