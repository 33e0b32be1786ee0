"""A first look at a memory, cell by cell: editors that know `# %%` run one at a time. No model is needed.

Run: python examples/notebook.py
"""

# %% Open a memory, and tell it something
import aforesaid

memory = aforesaid.open("notebook.db")
ann = memory.user("ann")
for said in ("I moved to Berlin last week.", "My sister Zoe visits on Friday.", "I like tea."):
    ann.add("user", said)
    ann.add("assistant", "Noted.")

# %% Find something again, and see why it was found
for hit in ann.search("where do I live", limit=3):
    print(hit.text, "|", hit.explain())

# %% Let it learn and summarise
print(memory.upkeep())
for known in ann.memories():
    print(known.category, known.importance, known.text)

# %% See what a model would be sent
print(ann.context("Who visits me?", budget=1000).explain())

# %% Correct it
ann.remember("I prefer coffee over tea")
ann.forget("my sister's visit")
print(ann.portrait())
memory.close()
