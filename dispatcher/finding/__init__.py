"""The experiments that this user keeps, and the one that is meant by a word or by none.

Shared by the command line and the Python API; what is found is read by `queries`.
"""
