"""Readers of what the compiler writes: HLO, Shardy modules, shardings, replica groups."""
