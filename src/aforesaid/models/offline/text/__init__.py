"""Text analysis: language, sentences, and vocabulary that shows the kind of a sentence."""
