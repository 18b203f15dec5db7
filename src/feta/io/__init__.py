"""Files: schemas, tables, models and journals, and text made safe to print."""
