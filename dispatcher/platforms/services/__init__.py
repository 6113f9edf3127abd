"""Services that run attempts themselves, each in a thread of its own."""
