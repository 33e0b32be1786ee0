"""Aforesaid as the memory of other libraries: one module per agent framework, each an extra of the same name.

`clients` is for the official clients of OpenAI and Anthropic (`aforesaid.wrap`). No other package of Aforesaid imports
these modules, and they do not import each other; `shared` is what they share.
"""
