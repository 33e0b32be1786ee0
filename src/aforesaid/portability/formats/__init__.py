"""Readers of what people have: one module for each format, all of which give out the same items."""
