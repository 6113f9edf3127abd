"""Heads that die, hang and are taken over from, while trials run: nothing lost, nothing twice."""
