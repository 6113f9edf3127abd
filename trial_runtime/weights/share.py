"""A name of 0.1.0, for processes of it that go on while this is installed; goes with 0.3."""

from trial_runtime.weights.storage.share import lay_token as lay_token
from trial_runtime.weights.storage.share import trouble_with as trouble_with
