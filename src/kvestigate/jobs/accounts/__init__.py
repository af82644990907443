"""What a user has, had and may have: the book, its records, quotas."""
