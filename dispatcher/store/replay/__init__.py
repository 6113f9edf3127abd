"""The past of an experiment, read back out of its journal.

`history` folds rows through the same `core.apply` that ran when they were written; `folding`
does so for a store whose oldest rows have become a base, and compacts one at rest; `restoring`
gives a tuner that starts again the calls that it has had, `showing` an assessor the metrics that it
has seen. Both read beside the engine (`background_write`). Nothing here writes an event.

For people, `stepping` applies a journal row by row and shows what moved a trial, `describing` has
the words for it, and `refused` is the report of an event that the core has refused.
"""
