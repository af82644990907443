"""The values that every other part of the plane speaks of. Pure.

What a request asks for, who asks, what the server knows of a kind, and how a stored object is
read. It imports only the store.
"""
