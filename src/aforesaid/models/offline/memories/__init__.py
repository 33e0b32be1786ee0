"""What is worth remembering in what people say about themselves."""
