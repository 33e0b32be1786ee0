"""Extractive summaries: chosen sentences of the conversation."""
