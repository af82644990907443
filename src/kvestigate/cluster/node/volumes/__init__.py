"""The directories and files that a pod's volumes are: made, filled from the API, mounted."""
