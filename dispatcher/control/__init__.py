"""Requests of users to a running head: the server in the head, and the client that asks it."""
