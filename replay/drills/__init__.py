"""Drills: scenario files with what must be found, run against the real twin."""
