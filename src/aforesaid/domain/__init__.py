"""Values that all packages use: frozen, without I/O."""
