"""Weights to state: where they come from, what they are matched with, exported and verified."""
