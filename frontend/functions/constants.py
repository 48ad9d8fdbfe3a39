"""The constants of the array API."""

from __future__ import annotations

import math

e = math.e
"""Euler's number."""
inf = math.inf
"""Positive infinity."""
nan = math.nan
"""Not a number."""
newaxis = None
"""In an index: a new axis of one element."""
pi = math.pi
"""The ratio of a circle's circumference to its diameter."""
