#!/bin/sh
# Runs a job of the pipeline on a standalone Spark cluster:
#
#   MASTER=spark://spark-master:7077 sh standalone.sh run --landing s3://history/landing --rollups s3://history/rollups
#
# The driver runs here (client mode; Spark has no cluster mode for Python on a standalone cluster), so start it by a
# timer, or for `stream` by a unit such as ackscope-stream.service. Master and workers need Spark 4.3, as this machine.
#
#   VENV      the environment with ackscope here; default /opt/ackscope/.venv
#   ARCHIVE   the same environment, packed by pack.sh: Spark sends it to the executors. Without it, every worker needs
#             the environment at the path VENV.
#   ACKSCOPE_STORAGE_FILE   the file with the credentials of the bucket (docs/object-storage.md), on this machine and on
#             every worker. Not needed if the machines have a role.
#
# Folders instead of a bucket must be mounted at the same path here and on every worker.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
venv=${VENV:-/opt/ackscope/.venv}
: "${MASTER:?set MASTER, such as spark://spark-master:7077}"

SPARK_HOME=${SPARK_HOME:-$("$venv/bin/python" -c 'import os, pyspark; print(os.path.dirname(pyspark.__file__))')}
export SPARK_HOME
export PYSPARK_DRIVER_PYTHON="$venv/bin/python"
export PYSPARK_PYTHON="$venv/bin/python"

set -- "$here/ackscope_job.py" "$@"
if [ -n "${ARCHIVE:-}" ]; then
    # Each executor unpacks it into its own working folder.
    PYSPARK_PYTHON=./environment/bin/python
    set -- --archives "$ARCHIVE#environment" "$@"
fi
if [ -n "${ACKSCOPE_STORAGE_FILE:-}" ]; then
    set -- --conf "spark.executorEnv.ACKSCOPE_STORAGE_FILE=$ACKSCOPE_STORAGE_FILE" "$@"
fi
# --properties-file replaces conf/spark-defaults.conf; --load-spark-defaults makes Spark read both.
exec "$SPARK_HOME/bin/spark-submit" --master "$MASTER" --name ackscope \
    --load-spark-defaults --properties-file "$here/spark-defaults.conf" "$@"
