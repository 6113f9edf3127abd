"""Additions to the Python API for notebooks: trials and tuners out of cells, and how all is shown.

`code` gives trial and tuner a place where other processes import them. `function_source` writes
definitions of cells out, with `sources`, which finds them, `changed`, which knows what their text
does not say, and `values` and `frames`, which make files of data; `trial_runtime.cells` reads
these. `following` and `events` tell what happens, `hearing` calls functions for it. `showing` makes
tables, `spoken` errors in the words of Python.
"""
