"""The garbage collector: deletes objects whose owners are gone, in the order owners ask for."""
