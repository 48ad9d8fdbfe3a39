"""The functions on tensors, eager and traced alike, one family a file."""
