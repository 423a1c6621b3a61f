"""Interrupts, hostile files, nonsense and other faults: what the device promises then."""
