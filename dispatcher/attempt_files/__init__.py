"""Files of attempts on any machine: listed, printed, and fetched beside the engine."""
