"""The reference evaluator (`dialects/evaluate.py`) as a backend."""
