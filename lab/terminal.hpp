#pragma once

namespace zerolab {

/// Whether somebody watches standard output on a terminal. Under mpirun it is a pipe to mpirun, so
/// mpirun's own is looked at, where it runs on this machine.
bool output_is_terminal();

}  // namespace zerolab
