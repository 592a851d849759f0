"""Fixtures of Onbeat for pytest. Thin: TensorFlow only where a fixture needs it."""
