"""File systems and their habits: confined paths, faults by name, patience, atomic publishing."""
