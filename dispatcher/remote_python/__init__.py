"""Python of ours on another machine, run by the Python that is there: one bundle of code, one way
to call it, one probe.

Nothing here knows how a machine is reached: a :class:`~dispatcher.remote_python.runner.Runner` runs
commands there. See docs/decisions/0061.
"""
