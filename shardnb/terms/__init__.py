"""The words of a report, each listed once: a `Literal` of names, and a table with their rows."""
