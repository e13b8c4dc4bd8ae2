"""Database work as values: programs, the SQL they name, and the dialects that differ."""
