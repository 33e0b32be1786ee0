-- A vector of a message takes half the bytes from here on: each of its numbers is one byte, or half of one in token
-- vectors. Both forms are read. Embedders go through the log once more and store the vectors that are there in the new
-- form; no text is embedded again.
UPDATE embedder SET up_to = 0;
