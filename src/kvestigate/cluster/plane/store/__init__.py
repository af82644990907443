"""The objects of all planes: revisioned, bytes first, shared between a plane and its forks.

It knows keys, revisions and bytes. It does not know kinds, does not parse objects (but for
`model.hollow`, which has to find a resourceVersion again), and decides nothing about
who may write what: that is the work of the verbs above.

    Store          the planes of one server: create, fork, delete, open        store.py
    Plane          one plane: read, commit, watch, checkpoint                  plane.py
    PlaneState     everything in a plane at one revision; steps between them   state.py
    Item, Change   one object at one revision; one step of the history         model.py
    Backend        where changes become durable: memory, sqlite, etcd          interface.py
"""
