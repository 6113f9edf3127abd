"""CPU cores and memory of trials on this host: counted, pinned, and bounded."""
