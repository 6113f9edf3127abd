"""bequeath's conformance tests over a real cluster."""

from dispatcher.conformance.allocations import *  # noqa: F403
from dispatcher.conformance.test_conformance import *  # noqa: F403
