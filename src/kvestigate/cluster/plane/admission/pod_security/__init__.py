"""Pod Security: the levels that the labels of a namespace ask for."""
