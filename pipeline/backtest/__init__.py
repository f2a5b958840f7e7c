"""The backtest: the diagnosis of today, replayed over the recorded history, with other thresholds side by side.

Pure, except `job` (Spark), `sources` (reads files) and `result_file`. `docs/pipeline.md` describes how to use it.
"""
