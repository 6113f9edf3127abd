"""What users ask of a running head, and its answers: the desk in the head, the client outside."""
