"""Built-in algorithms as modules; ``nni._aliases`` finds their stand-ins."""
