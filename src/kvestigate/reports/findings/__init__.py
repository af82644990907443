"""What is wrong with a cluster, or soon will be. PURE: rules take a snapshot, one file a topic."""
