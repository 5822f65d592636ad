"""What an optimized program sends: kinds, axes, bytes, trips, overlap."""
