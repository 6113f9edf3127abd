"""Weights to state: where they come from, what they are matched with, exported and verified."""

# Goes with 0.3: a process of 0.1.0 that goes on while this is installed has it from here.
from trial_runtime.weights.loading.loading import load as load
