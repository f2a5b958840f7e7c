#!/usr/bin/env bash
# Prepare this machine and the checkout: what is there stays as it is, what is missing is named before it is installed.
# Usage: scripts/setup.sh [test|ship|kube|azure]
# ("test" adds what only the tests need: a browser, strace, systemd-analyze;
# "ship" adds what builds and checks images and the chart: buildah, amtool, and helm and kubeconform, built by Go;
# "kube" adds a Kubernetes API: etcd, and helm and kube-apiserver, built by Go; "azure" adds Azurite, by npm)
set -euo pipefail
cd "$(dirname "$0")/.."

say() { echo "setup: $*" >&2; }
die() { echo "setup: $*" >&2; exit 1; }

# A system package is wanted only where its command is missing: own builds and other packagings count.
have() {
  case "$1" in
    rabbitmq-server) [ -x /usr/lib/rabbitmq/bin/rabbitmq-server ] || command -v rabbitmq-server ;;
    default-jre-headless) command -v java ;;
    prometheus | chromium | debootstrap | strace | buildah) command -v "$1" ;;
    prometheus-alertmanager) command -v prometheus-alertmanager ;;
    libfaketime) ls /usr/lib/*/faketime/libfaketimeMT.so.1 ;;
    etcd-server) command -v etcd ;;
    systemd) command -v systemd-analyze ;;
    gcc) command -v cc ;;
    python3-dev) python3 -c 'import os, sysconfig; os.stat(sysconfig.get_path("include") + "/Python.h")' ;;
    nginx-light) [ -x /usr/sbin/nginx ] || command -v nginx ;;
    python3-venv) python3 -c 'import ensurepip, venv' ;;
    # Erlang's and Debian's own keys, without which debootstrap refuses (Ubuntu).
    debian-archive-keyring) [ -e /usr/share/keyrings/debian-archive-keyring.gpg ] ;;
  esac >/dev/null 2>&1
}

install_system() {
  local missing=() package
  for package in "$@"; do have "$package" || missing+=("$package"); done
  [ ${#missing[@]} -gt 0 ] || return 0
  command -v apt-get >/dev/null 2>&1 ||
    die "missing: ${missing[*]}; there is no apt-get here, install them by hand and run this again"
  local root=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null 2>&1 || die "missing: ${missing[*]}; run as root or with sudo, or install them by hand"
    root=(sudo)
  fi
  say "installing with apt-get: ${missing[*]}"
  # Packages that start a service on installation must not: the lab runs its own brokers, on its own ports.
  local policy=/usr/sbin/policy-rc.d ours=
  if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' | "${root[@]}" tee "$policy" >/dev/null
    "${root[@]}" chmod +x "$policy"
    ours=yes
  fi
  local log status=0
  log=$(mktemp)
  { "${root[@]}" apt-get update && "${root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1 || status=$?
  if [ -n "$ours" ]; then "${root[@]}" rm -f "$policy"; fi
  if [ "$status" != 0 ]; then
    tail -n 5 "$log" >&2
    die "apt-get could not install ${missing[*]} (its whole output: $log); install them by hand and run this again"
  fi
  rm -f "$log"
  # Nor at the next boot: these services were not here before, and nobody asked for them.
  if [ -d /run/systemd/system ]; then
    for package in "${missing[@]}"; do
      case "$package" in
        rabbitmq-server | prometheus | prometheus-alertmanager) "${root[@]}" systemctl disable --quiet "$package" || true ;;
        nginx-light) "${root[@]}" systemctl disable --quiet nginx || true ;;
        etcd-server) "${root[@]}" systemctl disable --quiet etcd || true ;;
      esac
    done
  fi
  for package in "${missing[@]}"; do
    have "$package" || die "$package was installed, but its command is still missing; look at: dpkg -L $package"
  done
}

command -v python3 >/dev/null 2>&1 || die "python3 is missing: install Python 3.11 or newer"
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
  die "python3 is $(python3 -V 2>&1 | cut -d' ' -f2); Python 3.11 or newer is needed"

packages=(rabbitmq-server default-jre-headless prometheus debootstrap debian-archive-keyring)
command -v uv >/dev/null 2>&1 || packages+=(python3-venv)
[ "${1:-}" != test ] || packages+=(chromium strace systemd nginx-light prometheus-alertmanager libfaketime gcc python3-dev)
[ "${1:-}" != ship ] || packages+=(buildah prometheus-alertmanager)
[ "${1:-}" != kube ] || packages+=(etcd-server)
install_system "${packages[@]}"

uv=$(scripts/uv.sh)
# The environment is the lock file's and nothing else's; unchanged, this takes a moment.
stamp=.venv/.ackscope-lock
want=$(cat requirements.lock pyproject.toml | sha256sum | cut -d' ' -f1)
if [ ! -x .venv/bin/ackscope ] || [ "$(cat "$stamp" 2>/dev/null)" != "$want" ]; then
  say "installing the locked Python environment into .venv/ (about 1.5 GB with Spark)"
  [ -x .venv/bin/python ] || "$uv" venv --quiet --python python3 .venv
  # Compile at installation: otherwise each process does, wherever Python may not write compiled modules.
  "$uv" pip sync --quiet --compile-bytecode --python .venv/bin/python --require-hashes requirements.lock
  "$uv" pip install --quiet --python .venv/bin/python --no-deps --editable .
  echo "$want" >"$stamp"
fi

# Compiled, for the AMQP 1.0 clients of the lab.
if [ "${1:-}" = test ] && ! .venv/bin/python -c 'import proton' 2>/dev/null; then
  say "compiling python-qpid-proton (a minute)"
  "$uv" pip install --quiet --compile-bytecode --python .venv/bin/python --require-hashes -r requirements-amqp10.lock
fi

# Their versions are pinned; Go's checksum database checks them.
need_go() { command -v go >/dev/null 2>&1 || die "go is missing: install Go 1.26 or newer to build $1"; }
tools=()
[ "${1:-}" != ship ] && [ "${1:-}" != kube ] || tools+=(helm=helm.sh/helm/v3/cmd/helm@v3.22.0)
[ "${1:-}" != ship ] || tools+=(kubeconform=github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0)
for tool in "${tools[@]}"; do
  [ ! -x ".tools/bin/${tool%%=*}" ] || continue
  need_go "${tool%%=*}"
  say "building ${tool%%=*} with Go into .tools/bin (a minute or two)"
  (cd /tmp && GOBIN="$OLDPWD/.tools/bin" go install "${tool#*=}" >/dev/null 2>&1) ||
    die "go could not build ${tool%%=*}; see: cd /tmp && go install ${tool#*=}"
done

# Kubernetes cannot be installed by name, because its go.mod replaces modules. Ours pins them, and go.sum checks them.
if [ "${1:-}" = kube ]; then
  source=tests/ship/kube_apiserver target=$PWD/.tools/bin/kube-apiserver
  version=$(sed -n 's/^require k8s.io.kubernetes //p' "$source/go.mod")
  if [ "$("$target" --version 2>/dev/null)" != "Kubernetes $version" ]; then
    need_go kube-apiserver
    say "building kube-apiserver with Go into .tools/bin (up to ten minutes, and 3 GB in the caches of Go)"
    (cd "$source" && CGO_ENABLED=0 go build -trimpath -o "$target" \
      -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$version" \
      k8s.io/kubernetes/cmd/kube-apiserver >/dev/null 2>&1) ||
      die "go could not build kube-apiserver; see: cd $source && go build k8s.io/kubernetes/cmd/kube-apiserver"
  fi
fi
if [ "${1:-}" = azure ] && [ ! -x .tools/azurite/node_modules/.bin/azurite-blob ]; then
  command -v npm >/dev/null 2>&1 || die "npm is missing: install Node.js 18 or newer with npm"
  say "installing Azurite with npm into .tools/azurite (a minute)"
  npm install --prefix .tools/azurite --no-audit --no-fund azurite@3.35.0 >/dev/null 2>&1 ||
    die "npm could not install Azurite; see: npm install --prefix .tools/azurite azurite@3.35.0"
fi
say "ready: .venv/bin/ackscope --help"
