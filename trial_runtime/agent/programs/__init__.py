"""Programs that import nothing of ours: how they get parameters, and how their results are read.

`dialect` gives a process its arguments, variables and files. `following` reads what it prints or
writes and reports results; `lines` finds values in a line, `results` makes reports of them, and
`metrics_file` reads a file that grows, is begun anew, or is replaced.
"""
