"""Room for packages where a process of 0.1.0 has modules in memory; goes with 0.3.

Imported first by what such a process may load late, and what lies in those packages or needs them.
"""

import os
import sys

for _name in ("cache", "loading", "saving"):
    _module = sys.modules.get(f"{__package__}.{_name}")
    if _module is not None and not hasattr(_module, "__path__"):
        _module.__path__ = [os.path.join(os.path.dirname(os.path.abspath(__file__)), _name)]
