#!/bin/bash
# What Spark on Kubernetes starts in a container: with `driver` the driver, with `executor` an executor. Spark passes the
# rest by arguments and by the environment. Anything else is a command: `ackscope pipeline expire ...`.
set -euo pipefail

case "${1:-}" in
driver | executor)
    SPARK_HOME=$("$PYSPARK_PYTHON" -c 'import os, pyspark; print(os.path.dirname(pyspark.__file__))')
    export SPARK_HOME
    ;;
*) exec "$@" ;;
esac

if [ "$1" = driver ]; then
    shift
    exec "$SPARK_HOME/bin/spark-submit" --deploy-mode client \
        --conf "spark.driver.bindAddress=$SPARK_DRIVER_BIND_ADDRESS" "$@"
fi

# Options of Java come one in each variable, and are in the order of their numbers.
options=()
while IFS= read -r name; do
    options+=("${!name}")
done < <(compgen -v SPARK_JAVA_OPT_ | sort -t_ -k4n)

exec java "${options[@]}" "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" \
    -cp "${SPARK_CONF_DIR:-$SPARK_HOME/conf}:$SPARK_HOME/jars/*${SPARK_EXTRA_CLASSPATH:+:$SPARK_EXTRA_CLASSPATH}" \
    org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
    --driver-url "$SPARK_DRIVER_URL" --executor-id "$SPARK_EXECUTOR_ID" --cores "$SPARK_EXECUTOR_CORES" \
    --app-id "$SPARK_APPLICATION_ID" --hostname "$SPARK_EXECUTOR_POD_IP" \
    --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" --podName "$SPARK_EXECUTOR_POD_NAME"
