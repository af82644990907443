"""Authorization: RBAC and the node authorizer."""
