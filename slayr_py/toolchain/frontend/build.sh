#!/bin/sh
# Compile the front end, the tools and programs. The makefile calls this script with make's settings in the environment;
# the Python package calls it directly, so that it needs no make.
#
#   sh frontend/build.sh objects              print the object with which every program of these settings is linked
#   sh frontend/build.sh frontend             compile that object, stansummary and diagnose, unless they exist
#   sh frontend/build.sh program path/to/p    compile path/to/p.hpp and link path/to/p
#
# Settings: CXX, CXXFLAGS_OPTIM, O, STAN_THREADS, STAN_NO_RANGE_CHECKS, NO_SUNDIALS, USER_HEADER, MATH_HEADER,
# PRECOMPILED_HEADERS, LDFLAGS.
set -e
cd "$(dirname "$0")/.."
: "${CXX:=g++}" "${O:=3}"

# These determine sizes, alignment and thread-local storage, so the front end and the program must share them.
shared="-std=c++17 -pthread -D_REENTRANT -DBOOST_DISABLE_ASSERTS"
libraries=-Llib
# Solvers of differential and algebraic equations; the libraries are those of this machine.
[ -n "$NO_SUNDIALS" ] || libraries="$libraries -lsundials_cvodes -lsundials_idas -lsundials_kinsol -lsundials_nvecserial"
if [ -n "$STAN_THREADS" ]; then
  shared="$shared -DSTAN_THREADS"
  libraries="$libraries -ltbb -Wl,-rpath,\"\$PWD/lib\""
  # Without this, LD_LIBRARY_PATH would take precedence over the library with which the program was linked.
  [ "$(uname -s)" = Darwin ] || libraries="$libraries -Wl,--disable-new-dtags"
fi
[ -z "$STAN_NO_RANGE_CHECKS" ] || shared="$shared -DSTAN_NO_RANGE_CHECKS"
shared="$shared${CXXFLAGS_OPTIM:+ $CXXFLAGS_OPTIM}"
compile="$CXX $shared -isystem include -w"
case $CXX in
  # By default gcc spends a tenth of its time here on garbage collection, which it starts too early.
  g++*|*/g++*) compile="$compile --param ggc-min-expand=200 --param ggc-min-heapsize=1000000" ;;
  # The portable compiler writes debugging information unless it is told not to.
  *zig*) compile="$compile -g0" ;;
esac

build=build/$(printf '%s' "$CXX $shared" | cksum | cut -d ' ' -f 1)
frontend=$build/frontend.o

# Paths may have any characters: commands have them as variables, which eval expands.

# Write a file under another name and rename it: a killed run, or two at once, never leave a partial file.
atomically() {
  mkdir -p "$(dirname "$1")"
  made=$1.$$.tmp
  echo "$2 -o $1"
  if eval "$2 -o \"\$made\""; then mv -f "$made" "$1"; else rm -f "$made"; exit 1; fi
}

compile_frontend() {
  [ -f $frontend ] || atomically $frontend "$compile -O1 -c frontend/all.cpp"
  for tool in stansummary diagnose; do
    [ -f bin/$tool ] || atomically bin/$tool "$CXX -std=c++17 -O1 -w frontend/$tool.cpp frontend/chains.cpp frontend/stan_csv.cpp"
  done
}

compile_program() {
  header=frontend/model_header.hpp
  case $PRECOMPILED_HEADERS in
    TRUE|true|True|1)
      # gcc uses a precompiled header only if it is the first include and the plain header is in the same folder.
      header=$build/precompiled/model_header.hpp
      if [ ! -f $header.gch ]; then
        mkdir -p $build/precompiled
        cp frontend/model_header.hpp frontend/tbb.hpp $build/precompiled
        atomically $header.gch "$compile -O$O -x c++-header frontend/model_header.hpp"
      fi ;;
  esac
  includes="-include $header"
  [ -z "$USER_HEADER" ] || includes="$includes -include \"\$USER_HEADER\""
  if [ -n "$MATH_HEADER" ]; then
    includes="-include frontend/tbb.hpp -include \"\$MATH_HEADER\" $includes"
  fi
  echo "$compile -O$O $includes -x c++ -c $1.hpp -o $1.o"
  eval "$compile -O$O $includes -x c++ -c \"\$1.hpp\" -o \"\$1.o\""
}

case $1 in
  objects) echo $frontend ;;
  frontend) compile_frontend ;;
  program)
    compile_frontend &
    compile_program "$2"
    wait $!
    echo "$CXX $shared $2.o $frontend -o $2"
    eval "$CXX $shared \"\$2.o\" $frontend $LDFLAGS $libraries -o \"\$2\""
    rm -f "$2.o" ;;
  *) echo "build.sh has no command \"$1\"; give objects, frontend or program" >&2; exit 2 ;;
esac
