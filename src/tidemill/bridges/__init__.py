"""The bridges: operations in a transaction of the user's own, on the user's connection."""
