"""Users' accounts: the book of their tasks, its records, and quotas."""
