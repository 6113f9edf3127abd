"""Workers whose places are allocations of somebody else's scheduler: jobs of a cluster, pods.

One allocation holds one agent, which runs many trials. It may wait in a queue for days, be taken
back for something more urgent, and ends at its wall time: none of that is a fault of the agent.
"""
