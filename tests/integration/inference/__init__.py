"""Trained models that are asked, with real processes."""
