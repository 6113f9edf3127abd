"""Sections of NNI's for clusters and their services, turned into sections of our own platforms.

``tables.py`` lists the keys and what becomes of them. Each platform has a module of its own, with
one function for files of v1 and one for files of v2 and v3; ``catalogue.py`` names them, and what
became of the services that are no more. ``making.py`` has what all of them need.
"""
