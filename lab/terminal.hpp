#pragma once

#include <cstddef>

namespace zerolab {

/// Whether somebody watches standard output on a terminal. Under mpirun it is a pipe to mpirun, so
/// mpirun's own is looked at, where it runs on this machine.
bool output_is_terminal();
/// The same of standard error.
bool errors_are_watched();

/// Whether standard error itself is a terminal, which under mpirun it never is.
bool errors_go_to_terminal();

/// How wide a text may be that somebody reads: as the terminal, but no more than this; 100 where
/// there is none.
inline constexpr std::size_t kReadableColumns = 100;
std::size_t terminal_columns(std::size_t most = kReadableColumns);

}  // namespace zerolab
