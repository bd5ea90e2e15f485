#pragma once

#include <ostream>

#include "lab/options.hpp"
#include "stages/trace/recorder.hpp"

namespace zerolab {

/// Prints the events of this recorder that --show asks for, one readable line each, as they happen.
void show_events(Recorder& recorder, const Shown& shown);

/// Prints what is worth noting as it happens: a changed order of modules. `out` must outlive the
/// recorder.
void show_notes(Recorder& recorder, std::ostream& out);

}  // namespace zerolab
