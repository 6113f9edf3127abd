"""State to weights: what changed since the ancestor, written and published."""
