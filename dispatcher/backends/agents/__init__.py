"""The conversation of a head with an agent, whatever machine the agent is on."""

from dispatcher.backends.agents.driver import AgentDriver, Statistics
from dispatcher.backends.agents.identity import agent_routing_id
from dispatcher.backends.agents.process import AgentProcess, Loss

__all__ = ["AgentDriver", "AgentProcess", "Loss", "Statistics", "agent_routing_id"]
