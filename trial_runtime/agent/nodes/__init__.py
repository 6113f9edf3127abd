"""Trials of several nodes: the agents of one allocation meet, and rank 0 leads the others.

Only rank 0 speaks with the head. The others are followers: they dial rank 0, start and end the
processes of a trial by its orders, and report how these end.
"""
