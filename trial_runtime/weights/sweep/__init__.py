"""The files that belong to weights, so that others may go."""
