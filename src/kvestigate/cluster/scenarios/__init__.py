"""Scenarios: named YAML files that say what a cluster is made of and what goes on in it.

`model` reads one, `objects` and `nodes` say what follows from it (both are pure), and `seeding`
brings it into a cluster. The files that come with the package are in `shipped/`.
"""
