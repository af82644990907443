"""The functions of expressions, a file a subject: dicts from signatures to what computes them."""
