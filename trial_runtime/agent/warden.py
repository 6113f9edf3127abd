"""A file of 0.1.0, for agents of it that go on while this is installed; goes with 0.3.

They start it by its path, without a module path.
"""

import os
import runpy

if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    runpy.run_path(os.path.join(here, "processes", "warden.py"), run_name="__main__")
