"""The command line: `sardonyx` and `sardonyx-opt`. Imports all of the package; nothing imports it."""
