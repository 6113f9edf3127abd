"""A name of 0.1.0, for processes of it that go on while this is installed; goes with 0.3."""

import trial_runtime.weights.former  # noqa: F401 - before all else
from trial_runtime.weights.loading.loading import Verified as Verified
from trial_runtime.weights.loading.loading import verify as verify
