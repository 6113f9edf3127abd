"""A connection of two processes that share nothing but a folder: numbered files, and a bell each.

A compute node of a cluster often reaches no port of the machine on which the head runs, and mounts
the same file system. :mod:`~trial_runtime.folder_line.line` is one end; both ends carry the same
frames as the other channels do (:mod:`~trial_runtime.folder_line.relay`), in a thread of their own,
since a file server that hangs must hold up nothing else.

Network file systems cache names that are *not* there for half a minute, so nobody looks for the
next file: a small file of fixed name, opened anew at each look, announces it (``docs/decisions``,
0070).
"""
