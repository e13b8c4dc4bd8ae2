"""Programs, one module per topic: the order of statements, written once."""
