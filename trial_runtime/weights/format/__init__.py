"""Weights on disk: the manifest, data files, digests, and the skeleton of nested state."""
