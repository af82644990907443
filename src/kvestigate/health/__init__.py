"""What is wrong with a cluster, and why: rules over a snapshot, causes before symptoms, `audit`."""
