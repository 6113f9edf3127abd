"""Experiments as a user has them: looked up, made, explained; for command line and Python alike.

`find` finds the experiment that a name means, `known_folders` remembers where experiments lie,
`creating` makes a new one, `why` says why one does not go on. `queries` reads the experiments.
"""
