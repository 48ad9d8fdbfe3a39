"""A net and the script that exports, proves and reports it: docs/verify.md, step by step."""
