"""Platforms: the kinds of places that ``platform`` of an experiment file names.

Each joins a section of the file with a way to have workers there. Ours are registered as those
of other packages are; ``protocol.py`` is what those may import, and ``dispatcher.conformance``
is how anyone tests one.
"""
