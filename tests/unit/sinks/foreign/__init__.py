"""A sink of another package, as small as one can be: a file of lines for each trial."""
