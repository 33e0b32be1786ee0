"""Taking data out, and taking it in: dumps, exports, what other applications wrote."""
