"""Dates and times of day in what people say."""
