"""ENAS: a controller that learns which subgraphs of one network with shared weights do well.

Pham, Guan, Zoph, Le, Dean: Efficient Neural Architecture Search via Parameter Sharing,
arXiv:1802.03268. ``spaces.py`` has the forms of an architecture, ``controller.py`` draws one,
``learning.py`` is the controller's rule, ``tape.py`` its gradients, ``tuner.py`` the search.
"""

from tuners.enas.controller import Controller
from tuners.enas.learning import Reinforce
from tuners.enas.spaces import MacroSpace, MicroSpace
from tuners.enas.tuner import ENASTuner

__all__ = ["Controller", "ENASTuner", "MacroSpace", "MicroSpace", "Reinforce"]
