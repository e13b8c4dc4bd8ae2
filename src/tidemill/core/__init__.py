"""Pure decisions: functions of state, event and time. No I/O, no clock, no randomness."""
