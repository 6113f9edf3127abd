"""Effects of events, a module per family. Each function is called with a legal event only."""
