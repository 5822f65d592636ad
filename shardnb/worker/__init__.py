"""A process that compiles for this one: XLA's aborts end it alone, and so does an interrupt.

`process` starts it and asks it; `__main__` is what runs there. What passes between them is in
`jobs`. It is given MLIR bytecode and options, and never runs the user's Python.
"""
