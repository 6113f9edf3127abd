"""The server of the page: its parts."""
