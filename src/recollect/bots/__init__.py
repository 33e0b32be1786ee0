"""Bots on chat platforms: thin adapters between a platform and the assistant."""
