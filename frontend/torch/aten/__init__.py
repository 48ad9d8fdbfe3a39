"""Translations of ATen's operators: a module per family. A new file is one word in `FAMILIES` of `registry`."""
