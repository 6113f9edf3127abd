"""Built-in algorithms as modules: what stands for them here, see ``nni._aliases``."""
