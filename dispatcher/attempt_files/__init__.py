"""Files of attempts, wherever they ran: looked at, printed, and brought here beside the engine."""
