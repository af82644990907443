"""Admission by what users wrote: policies in CEL, and webhooks. Which writes they are about, what
they get to see of them, and what comes of it."""
