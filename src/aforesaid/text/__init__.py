"""Words of natural language: tokens, stems, languages, sentences, and expressions of time. No I/O and no storage."""
