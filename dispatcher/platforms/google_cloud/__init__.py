"""Jobs of Google Cloud's services, in what all such platforms have in common: its keys, its logs
and secrets, and how a job begins, ends and says why."""
