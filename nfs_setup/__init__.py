"""bequeath."""
