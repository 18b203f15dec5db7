"""Proofs about boxes of people by linear bounds, and by counting in how much of a box they hold."""
