"""The same requests to the real kube-apiserver and to a plane, and the same answers from both.

`topics/` holds the scripts, `golden/` what the real server answered to them, masked.
`test_replay` runs the scripts on a plane and compares; `tests/real/test_differential.py` runs
them on the real server and compares. `python -m tests.differential record` starts a real
server and writes the golden files anew; `... gaps` takes what passes off the list of what
planes do not do yet, `... admit` adds to it, `... show create/minimal` shows a script's answers.
"""
