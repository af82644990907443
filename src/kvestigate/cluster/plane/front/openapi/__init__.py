"""OpenAPI documents of what a plane serves, in versions 3 and 2. Pure.

They hold what clients act on: types, required fields, patch and list keys, paths with their
parameters and kinds. They hold no descriptions: those are Kubernetes' own documentation.
"""
