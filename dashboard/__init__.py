"""The web dashboard: shows data of the exporter and of the pipeline's rollups.

Data flows through `data` (I/O), `frames` (tables), `charts` (figures) and `ui` to `views` (pages). It computes nothing
that belongs in diagnosis or pipeline.
"""
