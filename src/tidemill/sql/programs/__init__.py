"""The programs, by topic: each storage operation as a generator of named statements."""
