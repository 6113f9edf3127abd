"""A folder of 0.1.0, for agents of it that go on while this is installed; goes with 0.3.

They put the folder above this one on the module path of trials: it gives its place on that path to
the one where ``nni`` is now.
"""

import importlib
import os
import sys

if __name__ == "nni":
    _above = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    _now = os.path.join(_above, "path")
    sys.path[:] = [_now if os.path.abspath(entry) == _above else entry for entry in sys.path]
    del sys.modules[__name__]
    importlib.import_module(__name__)
