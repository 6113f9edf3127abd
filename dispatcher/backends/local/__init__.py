"""The backend ``local``: one agent on this machine, and its trials as processes."""

from dispatcher.backends.local.backend import LocalBackend

__all__ = ["LocalBackend"]
