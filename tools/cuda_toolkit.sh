#!/usr/bin/env bash
# Prints the path of a CUDA 12.x toolkit, in NVIDIA's layout, and nothing else on stdout.
#
# CUDA 13 dropped the chips that Pavo is for, so only 12.x will do. Looked at in this order:
# PAVO_CUDA_ROOT (must fit, else an error), /usr/local/cuda-12*, /opt/cuda*, /usr/local/cuda, the
# nvcc of PATH, then the cache. A machine without one gets CUDA 12.4 from Debian's packages
# (suite trixie, non-free), unpacked beside the system and not installed: they need glibc 2.34.
#
# With --find nothing is made: it fails if there is none yet.
#
#   PAVO_CUDA_ROOT    a toolkit to use as it is
#   PAVO_CUDA_CACHE   where the made one lies; default ${XDG_CACHE_HOME:-~/.cache}/pavo/cuda-12.4
#   PAVO_CUDA_MAKE=1  pass over installed toolkits and make (or reuse) the cached one
set -euo pipefail

readonly DEBIAN_SUITE=trixie
readonly DEBIAN_PACKAGES=(nvidia-cuda-toolkit nvidia-cuda-dev libnvvm4 libcudart12
  libcu++-dev libcub-dev libthrust-dev)
readonly KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg
work= # scratch folder of a run that makes the toolkit, removed when the script ends
readonly CACHE=${PAVO_CUDA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/pavo/cuda-12.4}

note() { printf 'cuda_toolkit: %s\n' "$*" >&2; }
die() {
  note "$*"
  exit 1
}

# Version "12.4" of the toolkit at $1; says on stderr why it is unusable and fails.
usable_version() {
  local root=$1 compiler number header
  [[ -x $root/bin/nvcc ]] || { echo "$root/bin/nvcc is not there" >&2; return 1; }
  compiler=$("$root/bin/nvcc" --version 2>/dev/null |
    sed -n 's/.*release \([0-9]*\.[0-9]*\),.*/\1/p') || true
  [[ $compiler == 12.* ]] ||
    { echo "$root/bin/nvcc is release ${compiler:-unknown}, not 12.x" >&2; return 1; }
  number=$(sed -n 's/^#define CUDA_VERSION \([0-9]*\).*/\1/p' "$root/include/cuda.h" 2>/dev/null) ||
    true
  header=${number:+$((number / 1000)).$((number % 1000 / 10))}
  [[ $compiler == "$header" ]] ||
    { echo "$root: nvcc is $compiler but include/cuda.h is ${header:-missing}" >&2; return 1; }
  [[ -e $root/lib64/libcudart_static.a ]] ||
    { echo "$root/lib64/libcudart_static.a is not there" >&2; return 1; }
  echo "$compiler"
}

installed_candidates() {
  local path
  for path in /usr/local/cuda-12* /opt/cuda-12* /opt/cuda /usr/local/cuda; do
    [[ -d $path ]] && echo "$path"
  done
  if path=$(command -v nvcc); then
    path=$(readlink -f "$path")
    echo "${path%/bin/nvcc}"
  fi
}

# Base address of the Debian archive, as the machine's own apt sources have it.
archive_address() {
  # shellcheck disable=SC2016 # apt expands these, not the shell
  local format='$(ORIGIN) $(LABEL) $(CREATED_BY) $(REPO_URI)' address
  address=$(apt-get indextargets --format "$format" 2>/dev/null |
    awk '$1 == "Debian" && $2 == "Debian" && $3 == "Packages" {print $4; exit}')
  if [[ -z $address ]]; then # lists never fetched: read the sources themselves
    address=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources} 2>/dev/null |
      sed -n -e 's/^URIs: *\([^ ]*\/debian\)\/* *$/\1/p' \
        -e 's/^deb \(\[[^]]*\] \)\?\([^ ]*\/debian\)\/* .*/\2/p' | head -n 1)
  fi
  [[ -n $address ]] && echo "$address"
}

# Downloads the packages into $work/debs with an apt state of its own under $work.
download() {
  local address
  [[ $(dpkg --print-architecture 2>/dev/null) == amd64 ]] ||
    die "no CUDA 12.x toolkit found, and making one needs Debian or Ubuntu on amd64;" \
      "install CUDA 12.x and set PAVO_CUDA_ROOT"
  [[ -r $KEYRING ]] || die "$KEYRING is not there; try: apt-get install debian-archive-keyring"
  address=$(archive_address) ||
    die "no Debian archive in this machine's apt sources; install CUDA 12.x, set PAVO_CUDA_ROOT"
  mkdir -p "$work"/{lists/partial,cache/archives/partial,debs}
  : >"$work/status"
  echo "deb [signed-by=$KEYRING] $address $DEBIAN_SUITE main non-free" >"$work/sources.list"
  local -a options=(-qq -o "Dir::Etc::SourceList=$work/sources.list"
    -o Dir::Etc::SourceParts=/dev/null -o "Dir::State::Lists=$work/lists"
    -o "Dir::State::status=$work/status" -o "Dir::Cache=$work/cache"
    -o "APT::Sandbox::User=$(id -un)" -o Acquire::Retries=3)
  note "fetching CUDA 12.4 (1 GB) from the Debian archive"
  apt-get "${options[@]}" update >&2 || die "apt-get update for $DEBIAN_SUITE failed (see above)"
  (cd "$work/debs" && apt-get "${options[@]}" download "${DEBIAN_PACKAGES[@]}" >&2) ||
    die "apt-get download failed (see above); needs 1.1 GB free in ${CACHE%/*}"
}

unpack() { # package, files of tar ...
  local package=$1
  shift
  dpkg-deb --fsys-tarfile "$work/debs/${package}"_*.deb | tar -x -C "$work/files" "$@"
}

# The parts of the packages that configuring, building and inspecting need: 0.3 of 3 GB.
unpack_all() {
  local package
  mkdir -p "$work/files"
  unpack nvidia-cuda-toolkit ./usr/bin ./usr/lib/nvidia-cuda-toolkit
  unpack nvidia-cuda-dev --wildcards './usr/include/*' './usr/lib/*/libcudart*' \
    './usr/lib/*/libcudadevrt.a' './usr/lib/*/stubs/libcuda.so'
  for package in libnvvm4 libcudart12 libcu++-dev libcub-dev libthrust-dev; do
    unpack "$package" ./usr
  done
}

# Debian spreads the toolkit over /usr, which CMake does not recognise; NVIDIA's layout it does.
lay_out() {
  local files=$work/files/usr root=$work/root
  local own=$files/lib/nvidia-cuda-toolkit libraries=$files/lib/x86_64-linux-gnu tool
  mkdir -p "$root"/{bin,nvvm/bin,lib64}
  for tool in ptxas fatbinary cudafe++ bin2c nvlink nvprune cuobjdump nvdisasm cu++filt; do
    mv "$files/bin/$tool" "$root/bin/"
  done
  mv "$own/bin/nvcc" "$own/bin/crt" "$root/bin/" # Debian's usr/bin/nvcc is a shell wrapper
  mv "$own/bin/cicc" "$root/nvvm/bin/"
  mv "$own/libdevice" "$root/nvvm/libdevice"
  mv "$own/compute-sanitizer" "$root/compute-sanitizer"
  ln -s ../compute-sanitizer/compute-sanitizer "$root/bin/compute-sanitizer"
  mv "$files/include" "$root/include"
  mv "$libraries"/* "$root/lib64/"
  cat >"$root/bin/nvcc.profile" <<'PROFILE'
TOP              = $(_HERE_)/..
NVVMIR_LIBRARY_DIR = $(TOP)/nvvm/libdevice
LD_LIBRARY_PATH += $(TOP)/lib64:
PATH            += $(TOP)/nvvm/bin:$(_HERE_):
INCLUDES        += "-I$(TOP)/include" $(_SPACE_)
LIBRARIES       =+ $(_SPACE_) "-L$(TOP)/lib64/stubs" "-L$(TOP)/lib64"
PROFILE
}

# Compiles a kernel for each chip: a toolkit that cannot is not kept.
try_out() {
  local root=$1
  echo '__global__ void probe(float* x) { *x = 1.0f; }' >"$work/probe.cu"
  "$root/bin/nvcc" -cubin -arch=sm_60 -o "$work/probe.cubin" "$work/probe.cu" >&2 &&
    "$root/bin/nvcc" -cubin -arch=sm_70 -o "$work/probe.cubin" "$work/probe.cu" >&2
}

make_cached() {
  mkdir -p "${CACHE%/*}"
  exec 9>"$CACHE.lock"
  flock -n 9 || { note "waiting for another run that makes $CACHE"; flock 9; }
  usable_version "$CACHE" >/dev/null 2>&1 && return # made while waiting
  [[ -e $CACHE ]] && die "$CACHE is there but is no usable toolkit; remove it and try again"
  work=$(mktemp -d "$CACHE.making.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  trap 'exit 130' INT TERM
  download
  note "unpacking"
  unpack_all
  lay_out
  usable_version "$work/root" >/dev/null || die "the unpacked toolkit does not fit (see above)"
  try_out "$work/root" || die "the unpacked nvcc cannot compile; is g++ installed?"
  chmod 755 "$work/root"
  mv -T "$work/root" "$CACHE"
}

if [[ -n ${PAVO_CUDA_ROOT:-} ]]; then
  usable_version "$PAVO_CUDA_ROOT" >/dev/null ||
    die "PAVO_CUDA_ROOT=$PAVO_CUDA_ROOT is no usable CUDA 12.x toolkit (see above)"
  echo "$PAVO_CUDA_ROOT"
  exit
fi
if [[ ${PAVO_CUDA_MAKE:-0} != 1 ]]; then
  while read -r candidate; do
    if usable_version "$candidate" >/dev/null 2>&1; then
      echo "$candidate"
      exit
    fi
  done < <(installed_candidates)
fi
if ! usable_version "$CACHE" >/dev/null 2>&1; then
  [[ ${1:-} != --find ]] || die "no CUDA 12.x toolkit found; run tools/cuda_toolkit.sh to make one"
  make_cached
fi
echo "$CACHE"
