"""How are we talking to this cluster, and what is slow about it?"""
