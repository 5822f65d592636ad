"""Readers of the compiler's texts: HLO, Shardy modules, shardings, replica groups."""
