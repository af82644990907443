"""Typed partial views of Kubernetes objects: just the fields that the toolkit reads.

A view decodes straight from bytes; what it does not name is skipped without being built.
Views are immutable and hold no behaviour. A field that the server may leave out has the
value the API gives it then; `None` means that absence itself has a meaning. Times may be
`null` on the wire and are the only fields that expect it: `kube.decode` copes with the rest.
"""
