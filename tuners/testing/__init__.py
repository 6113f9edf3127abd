"""Parts for the unit tests of a tuner: gates that stand in for the dispatcher, and a whole search.

Nothing here starts a process or trains anything. :mod:`dispatcher.testing` goes further: it plays
an experiment around a tuner on the real engine.
"""

from tuners.testing.gates import OpenGate, RefusingGate, ScriptedGate, with_gate
from tuners.testing.search import Search

__all__ = ["OpenGate", "RefusingGate", "ScriptedGate", "Search", "with_gate"]
