"""What trials offer, and what models answer, without processes."""
