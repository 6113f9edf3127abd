"""The secret name of an agent: a later head needs it to reach the same agent again."""

from __future__ import annotations

import secrets
from pathlib import Path

from msgspec.structs import replace

from trial_runtime.agent.config import AgentConfig
from trial_runtime.agent.processes.record import write_private


def agent_routing_id(folder: Path, worker: str) -> str:
    """The routing id of this experiment's agent, made and stored at the first call.

    It holds the agent's secret; a restarted head must know the same one.
    """
    path = folder / f"agent-{worker}.id"
    name = f"agent:{worker}:"
    try:
        routing_id = path.read_text(encoding="ascii")
        if routing_id.startswith(name) and len(routing_id) > len(name):
            return routing_id  # not empty, as a power cut leaves what was never synced
    except (FileNotFoundError, UnicodeDecodeError):
        pass
    routing_id = f"{name}{secrets.token_hex(16)}"
    write_private(path, routing_id.encode("ascii"))
    return routing_id


def identified(config: AgentConfig, routing_id: str) -> AgentConfig:
    """A configuration of an agent that shows this routing id, whichever way it comes."""
    head, *ways = (replace(each, routing_id=routing_id) for each in (config.head, *config.ways))
    return replace(config, head=head, ways=tuple(ways))
