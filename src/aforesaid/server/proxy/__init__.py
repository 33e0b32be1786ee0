"""A proxy that speaks OpenAI's API: any client gets a memory by changing its base URL.

Requests go on to the configured provider with what is remembered added; answers come back byte for byte. New turns are
stored first, and nothing that fails here breaks a reply: the headers `X-Aforesaid-Memory` and `X-Aforesaid-Reason` say
what the memory did.
"""
