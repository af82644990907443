"""What an API server asks a node for on behalf of its clients: the kubelet's HTTPS API."""
