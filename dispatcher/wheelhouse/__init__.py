"""Wheels of the few compiled modules that our code needs on machines which have none of them.

Which ones there are is fixed by a list of names and digests; files are fetched once by the user's
own pip, kept in the user's cache, and used only when their digest is the one on the list.
"""

from dispatcher.wheelhouse.planning import USEFUL, WheelPlan, plan
from dispatcher.wheelhouse.pythons import HostPython
from dispatcher.wheelhouse.wheel_cache import WheelCache, WheelsMissing
from dispatcher.wheelhouse.wheels import MODULES, Wheel, known_wheels

__all__ = [
    "MODULES",
    "USEFUL",
    "HostPython",
    "Wheel",
    "WheelCache",
    "WheelPlan",
    "WheelsMissing",
    "known_wheels",
    "plan",
]
