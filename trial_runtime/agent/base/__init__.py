"""Parts without knowledge of attempts: timers, watched descriptors, helper threads, logs."""
