"""Trials written for NNI: the files they expect, and the files they write metrics to."""
