"""Reading text: its language, its sentences, the words that tell what kind of sentence it is."""
