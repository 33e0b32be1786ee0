"""What SQLite and PostgreSQL have in common: answers to questions, as statements for both."""
