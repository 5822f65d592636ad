"""What the command line does, apart from reading it."""
