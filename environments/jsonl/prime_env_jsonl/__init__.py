"""Tasks from any JSONL or Parquet file in the GENESYS schema or through a column mapping."""
