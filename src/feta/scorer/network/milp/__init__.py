"""The paper's mixed-integer program of a network over a person's counterparts."""
