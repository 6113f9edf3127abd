"""The folder of what a trial imports on machines where only ``trial_runtime`` was brought."""
