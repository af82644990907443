"""Looking at one thing in a cluster: namespaces, pods, any object, logs, and a command in a pod.

Everything but `exec` only reads. `status` and `describing` are pure.
"""
