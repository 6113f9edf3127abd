"""A way to the head through a machine with an SSH server that nodes may log in to.

Nodes of a cluster often reach no port of the head's machine but that of its SSH server, or of
another machine's beside it. :mod:`~trial_runtime.tunnel.tunnel` is the agent's end: it logs in,
runs nothing, and has that machine dial. The parts below it carry the head's own SSH connections,
too. paramiko is imported by who logs in alone.
"""
