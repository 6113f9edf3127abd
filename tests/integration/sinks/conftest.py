"""A disk that is really full."""

from tests.faults.storage.conftest import small_disk

__all__ = ["small_disk"]
