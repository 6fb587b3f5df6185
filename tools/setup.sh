#!/usr/bin/env bash
# Installs the Debian packages that are missing, and only those.
#   tools/setup.sh run     what building and running `pavo` needs
#   tools/setup.sh test    also what the tests and the checks need (default)
set -euo pipefail

run_packages=(
  g++ cmake ninja-build ccache pkg-config
  libboost-dev libspdlog-dev libhwy-dev libcli11-dev libtomlplusplus-dev
  nlohmann-json3-dev libpcre2-dev
  python3 python3-pip unzip)
test_packages=(
  git libgtest-dev libgmock-dev libbenchmark-dev clang clang-format clang-tidy)

case "${1:-test}" in
  run) wanted=("${run_packages[@]}") ;;
  test) wanted=("${run_packages[@]}" "${test_packages[@]}") ;;
  *)
    echo "setup: expected 'run' or 'test', got '$1'" >&2
    exit 2
    ;;
esac

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "setup: this is not a Debian system; going on with what is here. Needed, by Debian's names:" >&2
  echo "  ${wanted[*]}" >&2
  exit 0
fi

missing=()
for package in "${wanted[@]}"; do
  state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$state" = installed ] || missing+=("$package")
done
if [ "${#missing[@]}" -eq 0 ]; then
  exit 0
fi

if [ "$(id -u)" -eq 0 ]; then
  as_root=()
elif command -v sudo >/dev/null; then
  as_root=(sudo)
else
  echo "setup: these packages are missing and installing them needs root:" >&2
  echo "  apt-get install ${missing[*]}" >&2
  exit 1
fi

echo "setup: installing ${missing[*]}" >&2
install() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -q --no-install-recommends "${missing[@]}" >&2
}
# The package lists of a fresh machine may be absent or old; they are fetched only if they are.
if ! install; then
  echo "setup: refreshing the package lists" >&2
  "${as_root[@]}" apt-get update -q >&2
  install
fi
