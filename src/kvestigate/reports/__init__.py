"""Reports about a cluster, the audit that runs them all, and the findings it ends with.

One file a report: what it needs, how it is worked out of a snapshot (pure), how it is shown
(pure). Only `audit` and `run` read a cluster; nothing here writes to one.
"""
