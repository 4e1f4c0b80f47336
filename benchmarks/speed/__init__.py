"""Time and memory of gradients, fits, suggestions, compilation and kernel features."""
