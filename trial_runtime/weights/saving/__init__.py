"""State to weights: what changed since the ancestor, written and published."""

# Goes with 0.3: a process of 0.1.0 that goes on while this is installed has them from here.
from trial_runtime.weights.saving.saving import Published as Published
from trial_runtime.weights.saving.saving import save as save
