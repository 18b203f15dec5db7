"""Smooth activations: certified polynomials in float64, and Arb where float64 does not decide."""
