#pragma once

#include "lab/options.hpp"
#include "stages/trace/recorder.hpp"

namespace zerolab {

/// Prints the events of this recorder that --show asks for, one readable line each, as they happen.
/// Prints what is worth noting on standard error as it happens: a changed order of modules.
void show_notes(Recorder& recorder);

void show_events(Recorder& recorder, const Shown& shown);

}  // namespace zerolab
