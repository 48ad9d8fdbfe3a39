"""The tensor-level dialect, one op family a file."""
