"""OpenAPI documents of the kinds that a plane serves, in versions 3 and 2. Pure.

They contain what clients act on: types, required fields, patch and list keys, paths with their
parameters and kinds. They contain no descriptions: those are Kubernetes' own documentation.
"""
