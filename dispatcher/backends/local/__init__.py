"""The local backend: one agent process on this machine, which is parent of all trials."""

from dispatcher.backends.local.driver import LocalBackend
from dispatcher.backends.local.identity import agent_routing_id

__all__ = ["LocalBackend", "agent_routing_id"]
