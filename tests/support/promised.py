"""What the place where tests run promises to have: a test that misses it fails there.

Anywhere else such a test is left out, with the command that brings what it misses. Without a
promise a broken installation leaves out all tests of a browser, and nothing but a number says so.
"""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

#: Names what is promised, with spaces between: ``.ci/run`` sets it once the packages are there.
PROMISED = "BEQUEATH_PROMISED"


def leave_out(what: str, reason: str) -> NoReturn:
    """Leave the test out, or fail it where what it misses is promised.

    Args:
        what: the name by which it is promised, as in ``needs(what)``.
        reason: what is missing, and the command that brings it.
    """
    if what in os.environ.get(PROMISED, "").split():
        pytest.fail(f"{PROMISED} promises {what}, and this test {reason}", pytrace=False)
    pytest.skip(reason)
