"""An agent on each of several machines, and a tunnel from it to the head."""
