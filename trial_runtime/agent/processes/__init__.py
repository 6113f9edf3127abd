"""Processes: started, known by their mark, swept when an attempt is over, ended with the agent."""
