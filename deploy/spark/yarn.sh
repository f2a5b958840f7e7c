#!/bin/sh
# Runs a job of the pipeline on YARN. Not run by the tests of ackscope: there is no YARN in them.
#
#   ARCHIVE=environment.tar.gz sh yarn.sh run --landing s3://history/landing --rollups s3://history/rollups
#   DEPLOY_MODE=client ARCHIVE=environment.tar.gz sh yarn.sh ask worst --by backlog --rollups s3://history/rollups
#
# The cluster needs no Spark of its own: spark-submit sends the Java files of the environment VENV (set spark.yarn.archive
# in spark-defaults.conf to send them only once). Every node needs Java 17 and the Python that pack.sh names.
#
#   DEPLOY_MODE   cluster (default): the driver runs on the cluster, and YARN starts it again if it fails; options must
#                 not name files of this machine. client: it runs here, and prints its answer here.
#   ARCHIVE       the environment, packed by pack.sh; a file here, or an address that Hadoop can read
#   VENV          the environment with ackscope here; default /opt/ackscope/.venv
#   HADOOP_CONF_DIR   the configuration of the cluster
#   ACKSCOPE_STORAGE_FILE   the file with the credentials of the bucket (docs/object-storage.md), on every node. Not
#                 needed if the nodes have a role.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
venv=${VENV:-/opt/ackscope/.venv}
mode=${DEPLOY_MODE:-cluster}
: "${ARCHIVE:?set ARCHIVE to the environment that pack.sh made}"
: "${HADOOP_CONF_DIR:?set HADOOP_CONF_DIR to the folder with yarn-site.xml}"

SPARK_HOME=${SPARK_HOME:-$("$venv/bin/python" -c 'import os, pyspark; print(os.path.dirname(pyspark.__file__))')}
export SPARK_HOME
python=./environment/bin/python

set -- "$here/ackscope_job.py" "$@"
if [ -n "${ACKSCOPE_STORAGE_FILE:-}" ]; then
    set -- --conf "spark.executorEnv.ACKSCOPE_STORAGE_FILE=$ACKSCOPE_STORAGE_FILE" \
        --conf "spark.yarn.appMasterEnv.ACKSCOPE_STORAGE_FILE=$ACKSCOPE_STORAGE_FILE" "$@"
fi
if [ "$mode" = client ]; then
    # The driver's Python is the one here; that of the executors is in the archive.
    export PYSPARK_DRIVER_PYTHON="$venv/bin/python" PYSPARK_PYTHON="$python"
else
    unset PYSPARK_DRIVER_PYTHON PYSPARK_PYTHON
    set -- --conf "spark.yarn.appMasterEnv.PYSPARK_PYTHON=$python" "$@"
fi
# --properties-file replaces conf/spark-defaults.conf; --load-spark-defaults makes Spark read both.
exec "$SPARK_HOME/bin/spark-submit" --master yarn --deploy-mode "$mode" --name ackscope \
    --load-spark-defaults --properties-file "$here/spark-defaults.conf" --archives "$ARCHIVE#environment" "$@"
