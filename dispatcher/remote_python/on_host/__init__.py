"""Programs that run on a machine, by its own Python (3.9 or later); see ``bundle.py``.

They import nothing but the standard library and one another. :class:`LocalFiles` imports two of
them here, since what they do there is done here in the same way.
"""
