"""Who owns which field: server-side apply and managed fields, as sets of field paths.

Pure. Nothing here knows of requests or of stored objects; times and names of managers are
arguments. `ownership` holds the two operations, a write and an apply; the rest is what they
are made of.
"""
