"""Searches among programs that nobody wrote: fixes, explicit annotations, plans."""
