"""The conversation of a head with an agent, whatever machine the agent is on."""
