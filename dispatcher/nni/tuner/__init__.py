"""Tuners and advisors of NNI's in the tuner host: their callbacks, metrics and surroundings."""
