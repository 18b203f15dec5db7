"""The ONNX reader."""
