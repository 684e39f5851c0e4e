"""What can be read here, what not, and what to do about it."""
