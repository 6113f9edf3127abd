"""A name of 0.1.0, for processes of it that go on while this is installed; goes with 0.3."""

from trial_runtime.weights.storage.roots import Located as Located
from trial_runtime.weights.storage.roots import configure as configure
