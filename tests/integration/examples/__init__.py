"""The examples, run for short by the real engine."""
