"""The embedded cluster: assembled from plane, controllers, scheduler and nodes, and kept running.

The only package that knows all of its parts. They meet over the Kubernetes API alone, so
each can be replaced by the real one.
"""
