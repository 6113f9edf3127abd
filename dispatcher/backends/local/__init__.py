"""The backend ``local``: one agent on this machine, and its trials as processes."""

from dispatcher.backends.local.backend import LocalBackend
from dispatcher.backends.local.process import LocalProcess

__all__ = ["LocalBackend", "LocalProcess"]
