"""What is particular about each kind: defaults, validation, conversions, advice. Pure.

A kind is a subclass of `model.kind.Kind`; `registry` lists all that are built in, and `types` adds
the custom ones of a plane. Families of kinds have a folder each; `podspec` is what pods and the
templates of workloads share, and `checks` what nearly all validators do.
"""
