"""A name of 0.1.0, for processes of it that go on while this is installed; goes with 0.3."""

from trial_runtime.weights.storage.paths import as_declared as as_declared
from trial_runtime.weights.storage.paths import resolve_in_root as resolve_in_root
