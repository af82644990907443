"""The rules of the audit, one file per topic. PURE: a rule turns a snapshot into findings."""
