"""Asking a trained model: a trial's `infer` is called in a process of its own, bounded.

It decides nothing and changes nothing of an experiment; it holds the weights that it reads, so that
they stay meanwhile. User code never runs in the process that asks. Read ``declared.py`` first (what
a module offers, read without running it), then ``trained.py`` (what a process needs) and
``process.py``; ``models.py`` keeps one warm.
"""
