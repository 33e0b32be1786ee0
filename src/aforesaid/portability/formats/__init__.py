"""Readers of import formats: one module per format. All of them yield the same items."""
