"""The drivers: one file for each kind of connection, each a page that runs programs on it."""
