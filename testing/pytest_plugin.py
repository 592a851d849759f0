"""Fixtures of Onbeat for pytest. Thin: imports TensorFlow only where a fixture needs it."""
