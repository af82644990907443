"""The three ways to patch an object: JSON patch, JSON merge patch, strategic merge patch.

All work on decoded JSON, never change what they are given, and copy only the containers along
a changed path: the result shares everything else with its inputs. Failures are the Status that
an API server answers with; where that Status hides the cause, the error's hint tells it.
"""
