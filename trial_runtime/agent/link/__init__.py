"""The agent's side of its connection to the head: reports, the outbox, the head's paths."""
