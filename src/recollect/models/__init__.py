"""Models, behind small contracts."""
