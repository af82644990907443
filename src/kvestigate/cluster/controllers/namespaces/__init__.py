"""What every namespace has: its end, its quota, its service account, its root certificate."""
