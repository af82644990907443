"""Tasks on a cluster: started, watched, ended together, explained, and reached while they run."""
