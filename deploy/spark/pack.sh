#!/bin/sh
# Packs the virtual environment of ackscope for executors that do not have it: standalone.sh and yarn.sh send the archive.
#
#   python3 -m venv /opt/ackscope/.venv
#   /opt/ackscope/.venv/bin/pip install 'ackscope-VERSION-py3-none-any.whl[pipeline,object-storage]'
#   sh pack.sh /opt/ackscope/.venv environment.tar.gz
#
# An environment refers to the Python that made it: every worker needs the same version of Python at the same path as
# this machine (`python3 -c 'import sys; print(sys.base_prefix)'`). Where workers have none, build the environment with
# conda and pack it with conda-pack, which includes Python.
set -eu
if [ $# -ne 2 ]; then
    echo "usage: $0 VENV ARCHIVE.tar.gz" >&2
    exit 3
fi
"$1/bin/python" -c 'import ackscope, pipeline, pyarrow' || {
    echo "$0: $1 has no ackscope with its extra [pipeline]; install it there first" >&2
    exit 3
}
# Executors have the Java of Spark already. Scripts of bin/ have absolute paths and would not work there; only Python does.
tar --create --gzip --file "$2" --directory "$1" \
    --exclude '*/pyspark/jars' --exclude '__pycache__' --exclude './bin/activate*' --exclude './bin/pip*' .
