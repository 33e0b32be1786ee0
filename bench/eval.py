"""Measure recall, contexts, summaries, memories, answers or speed. See docs/how-to/measure-recall.md."""

from evaluation.commands import commands

if __name__ == "__main__":
    commands()
