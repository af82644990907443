"""One verb a file: from a Call to a Response."""
