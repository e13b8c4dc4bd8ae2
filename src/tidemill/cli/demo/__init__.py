"""The demonstration: real files, real processes, real faults, and books that must balance."""
