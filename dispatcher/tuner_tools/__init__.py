"""Tools that try a tuner without training anything, on the real engine and tuner host."""
