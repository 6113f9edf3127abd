"""The experiments that this user keeps, the one that is meant by a word or by none, and why it
does not go on.

Shared by the command line and the Python API; what is found is read by `queries`.
"""
