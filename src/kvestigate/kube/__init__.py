"""Pure Kubernetes vocabulary: names, quantities, selectors, paths, patches, typed views, facts.

Values in, values out: no I/O, no clock, no network.
"""
