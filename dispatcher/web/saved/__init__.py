"""A run as one HTML file: the page, its data and its policy, for a browser without a server."""
