"""What spark-submit starts: `spark-submit ... ackscope_job.py run --landing ...` is `ackscope pipeline run ...`.

spark-submit takes a file that ends in .py. This one stands alone in its folder, because Python puts the folder first in
its search path.
"""

import sys

from ackscope.__main__ import main

if __name__ == "__main__":
    sys.exit(main(["pipeline", *sys.argv[1:]]))
