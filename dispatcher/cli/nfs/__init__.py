"""``bequeath nfs``: shares set up, measured and taken back, on this machine or on many."""
