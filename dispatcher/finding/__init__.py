"""The experiments that this user keeps, the one that a name or none means, and why it does not go
on.

Shared by the command line and the Python API; `queries` reads the experiments.
"""
