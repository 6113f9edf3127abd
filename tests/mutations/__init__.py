"""Faults that are planted to see whether they are found: ``python -m tests.mutations [NAME…]``.

:mod:`~tests.mutations.catalogue` lists them, each with the promise that it breaks and the tests
that must find it. To add one is to add an entry there.
"""
