"""Searches among variants of a program: fixes, explicit annotations, plans."""
