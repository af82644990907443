"""The planes of one server: made, found, timed, copied and removed.

`environment` answers for a plane as a whole (snapshot, fork, checkpoint, diff, step), `fleets`
keeps as many planes as a Fleet object declares.
"""
