"""The conversation of a head with an agent, whatever machine the agent is on."""

from dispatcher.backends.agents.attended import AttendedVisit, Called, Told
from dispatcher.backends.agents.driver import AgentDriver
from dispatcher.backends.agents.identity import agent_routing_id
from dispatcher.backends.agents.process import AgentProcess, Loss, Waiting
from dispatcher.backends.agents.self_report import Statistics
from dispatcher.backends.agents.visit import AgentEnded, HeadGone, Visit
from dispatcher.backends.agents.visited import VisitedProcess

__all__ = [
    "AgentDriver",
    "AgentEnded",
    "AgentProcess",
    "AttendedVisit",
    "Called",
    "HeadGone",
    "Loss",
    "Statistics",
    "Told",
    "Visit",
    "VisitedProcess",
    "Waiting",
    "agent_routing_id",
]
