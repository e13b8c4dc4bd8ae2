"""Frozen plain data that every layer speaks. Standard library only."""
