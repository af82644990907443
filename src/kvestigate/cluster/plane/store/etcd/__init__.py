"""The backend for several servers: an etcd that they share.

Each plane has a log in etcd, with a key for every change, and a head that says how far the log
goes. A server decides a write on what it knows and appends it in one transaction that compares
the head: if another server was there first, nothing is written, the answer has what was missed,
and the writer is judged anew. So revisions are as dense and as ordered as those of one server.
etcd's watch brings every server what the others did; a write is acknowledged when etcd has it.

    PREFIX/plane/NAME            what a plane is: its id, ancestors, checkpoints
    PREFIX/head/ID               the revision that its log has reached
    PREFIX/log/ID/REVISION       a change, or with a + after the revision a bundle of many
    PREFIX/part/ID/TOKEN/N       pieces of a bundle that is too large for one request
    PREFIX/dead/ID               a template, or a deleted plane, which forks still stand on
    PREFIX/want/ID               by a server that was overtaken: others let it go next
    PREFIX/ref/ID/FORK           a fork, and the revision it starts from
    PREFIX/pulse                 written now and then, so that a watch that has died is noticed

    client       etcd's JSON gateway
    layout       keys and values (pure)
    records      which planes there are, as far as is known here
    writer       steps in
    reader       planes out
    cleaner      removing what nobody can see any more
    follower     what other servers did
    backend      all of it together
"""
