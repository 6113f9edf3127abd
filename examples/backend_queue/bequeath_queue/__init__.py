"""A platform for bequeath: trials in places that a queue gives, and takes back."""
