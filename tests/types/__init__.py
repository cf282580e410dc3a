"""What users write, checked by mypy and basedpyright in `./run check`; nothing here is run."""
