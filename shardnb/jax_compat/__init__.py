"""Everything of JAX and jaxlib that is private or may change, in one place."""
