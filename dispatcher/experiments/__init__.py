"""Experiments as a user has them, for command line, notebook and scripts alike.

`handle` is a hold on one experiment, and all that a user can do with it. Behind it: `find` finds
the one that a name means, `known_folders` remembers where experiments lie, `creating` makes a new
one, `processes` starts and kills, `why` says why one does not go on. `queries` reads experiments.
"""
