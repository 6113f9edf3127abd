"""The places where attempts run. A backend starts and watches agents; it decides nothing.

``local`` is this machine; ``testing`` is a backend that does what a test tells it.
"""
