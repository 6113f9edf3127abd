"""Copies of weights on a disk of this host, shared by its trials."""
