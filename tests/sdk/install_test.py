"""The installed package suffices: its programs find their plugins, its headers stand alone in both
languages, and the template plugin builds out of tree with each compiler that is here and passes the kit.

install_test.py SOURCE_DIR BUILD_DIR
"""

import pathlib
import shutil
import sys
import tempfile

from prefix import clean_environment, run

WARNINGS = "-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Werror"
C_HEADERS = {"plugin.h", "quant.h"}


def check_headers(include, scratch, c_compiler, cxx_compiler):
    """Each header compiles without another; those of the ABI as C11 too."""
    for header in sorted((include / "pavo").glob("*.h")):
        source = scratch / "alone.cpp"
        source.write_text(f'#include "pavo/{header.name}"\n')
        words = ["-fsyntax-only", f"-I{include}", *WARNINGS.split(), str(source)]
        run([cxx_compiler, "-std=c++17", *words])
        if header.name in C_HEADERS:
            run([c_compiler, "-std=c11", "-x", "c", *words])


def check_layout(include, source_dir, scratch, c_compiler):
    """The ABI's structs have the written layout, seen from C11 and the installed header."""
    run([c_compiler, "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-c", f"-I{include}",
         f"-I{source_dir}", str(source_dir / "tests/sdk/layout_c.c"), "-o", str(scratch / "layout.o")])


def build_template(prefix, scratch, c_compiler, cxx_compiler, environment):
    folder = scratch / f"template-{cxx_compiler}"
    shutil.copytree(prefix / "share/pavo/template", folder)
    build = folder / "build"
    run(["cmake", "-S", str(folder), "-B", str(build), f"-DCMAKE_PREFIX_PATH={prefix}",
         f"-DCMAKE_C_COMPILER={c_compiler}", f"-DCMAKE_CXX_COMPILER={cxx_compiler}",
         f"-DCMAKE_CXX_FLAGS={WARNINGS}"], env=environment)
    run(["cmake", "--build", str(build)], env=environment)
    plugin = build / "libpavo-null.so"
    # The rest of the kit goes over the one of the build: conformance.null.
    report = run([str(prefix / "bin/pavo"), "conformance", str(plugin), "--only", "L0."], env=environment)
    print(f"{cxx_compiler}: {report.splitlines()[-1]}")


def main():
    source_dir, build_dir = (pathlib.Path(word) for word in sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        prefix = scratch / "prefix"
        environment = clean_environment(scratch)
        run(["cmake", "--install", str(build_dir), "--prefix", str(prefix)], env=environment)
        report = run([str(prefix / "bin/pavo"), "doctor"], env=environment)
        for expected in (f"{prefix}/lib/pavo/plugins (install prefix)", "cpu 0.1.0: ready"):
            if expected not in report:
                sys.exit(f"{report}\nexpected '{expected}'")
        compilers = [("gcc", "g++")]
        if shutil.which("clang") and shutil.which("clang++"):
            compilers.append(("clang", "clang++"))
        check_headers(prefix / "include", scratch, *compilers[-1])
        for c_compiler, cxx_compiler in compilers:
            check_layout(prefix / "include", source_dir, scratch, c_compiler)
            build_template(prefix, scratch, c_compiler, cxx_compiler, environment)


if __name__ == "__main__":
    main()
