"""A proxy that speaks OpenAI's API: any client gets a memory by changing its base URL.

Requests go on to the provider of the settings, with what is remembered added to the system message; answers come back
byte for byte. What was said is stored on the way. Whatever fails here, the reply does not: then it is as if there were
no memory, and the header `X-Aforesaid-Memory` says so.
"""
