"""Plots of an experiment: computed once, drawn as a PNG and by the page.

Each kind of plot is a function that reads an experiment and returns a record of ``shapes``, with
bounds on trials, parameters and processor time. ``pictures`` draws these records by matplotlib; the
page draws the same ones, which it gets as JSON. Neither computes anything that the other lacks.

Read ``kinds.py`` and ``shapes.py`` first, then ``sampling.py`` (which trials and parameters there
are), then ``importance.py``.
"""
