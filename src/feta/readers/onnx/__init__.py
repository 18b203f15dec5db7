"""Reader of ONNX graphs."""
