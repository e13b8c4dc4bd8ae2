"""Durable background jobs in the database your application already runs."""
