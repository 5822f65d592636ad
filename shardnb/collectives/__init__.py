"""The collectives of an optimized program: kinds, axes, bytes, trips, overlap."""
