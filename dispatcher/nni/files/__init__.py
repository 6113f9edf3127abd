"""Experiment files written for NNI, of v1 and of v2/v3, turned into our own keys.

Pure: values in, values out, with a written decision for each key and the place in the user's
own file kept for errors. ``tables.py`` lists every key there is and what becomes of it (the docs
are made from it), ``detection.py`` finds a file's version, ``v1.py`` and ``v2.py`` translate,
``algorithms.py`` knows the built-in names.
"""
