"""Files of attempts, read where they lie by programs that any Python of 3.9 or later can run."""
