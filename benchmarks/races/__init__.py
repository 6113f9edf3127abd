"""Races on the clock: one trial, several systems, and who first knows of a result that is good.

``member`` and ``grown`` are the trials, imported by all; ``clock`` is what their programs say;
programs are named by system and task. ``running`` starts them, ``judging`` compares them.
Programs of peers run in environments with little more than numpy, so importing this loads nothing.
"""
