import subprocess
import sys

HEAVY = "import sys, exporter.app; print(sorted({'pyarrow', 'pandas', 'pyspark'} & set(sys.modules)))"


def test_arrow_is_not_loaded_where_nothing_is_landed():
    """It is 40 MB of memory, beside a production broker."""
    done = subprocess.run([sys.executable, "-c", HEAVY], capture_output=True, text=True, check=True)

    assert "[]" == done.stdout.strip()
