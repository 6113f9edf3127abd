"""What an experiment has been through, read back out of its journal.

`history` folds rows through the same `core.apply` that ran when they were written; `compacted`
does so for a store whose oldest rows have become a base, and compacts one at rest; `restoring`
gives a tuner that starts again what it has been told, `showing` an assessor what it has seen.
Both read beside the engine (`beside`). Nothing here writes an event.
"""
