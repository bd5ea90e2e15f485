#pragma once

#include <cstddef>

namespace zerolab {

/// Whether somebody watches standard output on a terminal. Under mpirun it is a pipe to mpirun, so
/// mpirun's own is looked at, where it runs on this machine.
bool output_is_terminal();

/// How many columns a text may take: those of the terminal, or 100.
std::size_t output_columns();

}  // namespace zerolab
