"""``pytest tests/sim --rewrite-scenarios`` writes the answers anew: commit only what you can
explain."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Registered when tests/sim is named on the command line."""
    parser.addoption("--rewrite-scenarios", action="store_true")
