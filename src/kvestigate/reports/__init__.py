"""Reports about a cluster, and the audit, which runs all of them and all rules.

One file per report: its sources, `collect` from a snapshot (pure), `render` (pure). Only `audit`
and `run` read a cluster; nothing here writes to one.
"""
