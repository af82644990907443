"""The backend for one machine: an SQLite database, written by one thread.

Each write is one row in a log, `version`, whose key is (plane, revision). A plane is what its
log leads to, on top of what its parent was at the revision where it was forked off. So a
write costs one insert, a fork one row without data, and no change to the parent can show in
a fork: the parent's log only grows, and rows that a fork or a checkpoint still needs stay.

An acknowledged write is in SQLite's write-ahead log and synced: it survives the death of the
process and of the machine. The database is locked for as long as it is open.

    backend      the thread, and the door to it
    schema       tables and settings
    log          steps in
    reader       planes out
    cleaning     removing them, a piece at a time
"""
