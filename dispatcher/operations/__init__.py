"""The table of what one can ask of experiments and do to them, for all ways in.

Command line, Python, an interface for scripts and a page carry out the same operations: `table`
lists them, each with its scope, arguments, answer and route; `perform` carries one out. The work is
done by `dispatcher/experiments`; the modules here turn arguments into answers, whose fields are the
JSON.
"""
