"""Upkeep of an experiment's disks and weights while it runs.

`retention` removes weights that nothing needs, in a thread beside the engine; `disk_watch` sees a
disk run low before it is full; `backup` makes a second folder that can be resumed like the first.
None of them decides: the weight keeper does, what may go, and the core, what follows from a low
disk.
"""
