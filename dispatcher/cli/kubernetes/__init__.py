"""``bequeath kubernetes``: what a cluster's administrators are asked for."""
