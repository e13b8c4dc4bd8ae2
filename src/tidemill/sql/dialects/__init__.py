"""The dialects: how each database spells placeholders and writes plain values."""
