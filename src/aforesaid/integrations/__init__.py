"""Aforesaid as the memory of other frameworks: one module per framework, each an extra of the same name.

No other package of Aforesaid imports these modules, and they do not import each other. `calls`, `conversation`,
`documents` and `vectors` are what they share.
"""
