"""What a person sees of a report: text, HTML, a figure. Views read a Report, never JAX."""
