"""The adapters: stores on connections of our own; they connect, wait and hint."""
