"""Anyone's tuner, tried and told apart without training anything: on the real engine and host."""
