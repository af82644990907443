"""One request being read: its body, its options, the form of the answer, its turn among others."""
