"""Examples that ship with the package, with their data."""
