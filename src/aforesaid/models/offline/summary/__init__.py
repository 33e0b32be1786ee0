"""Summaries of what was said, made of its own sentences."""
