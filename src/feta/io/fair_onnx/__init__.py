"""The fair decision as one ONNX graph: people without sensitive columns, decision, `sure`."""
