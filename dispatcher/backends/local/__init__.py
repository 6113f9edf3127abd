"""One agent on this machine, and its trials as processes."""
