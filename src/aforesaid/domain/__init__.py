"""The values that every room speaks in: frozen, without I/O."""
