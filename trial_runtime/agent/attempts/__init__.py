"""The way of an attempt through the agent: prepared, launched, heard, ended, its weights judged."""
