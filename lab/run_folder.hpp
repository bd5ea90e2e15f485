#pragma once

#include <filesystem>

namespace zerolab {

/// Makes `folder` an empty run folder: creates it with its parents, or removes the run that is in
/// it. Only one rank calls this. A folder that holds anything zerolab does not write is left as it
/// is. Throws Error (Code::output_folder), naming what is in the way.
void prepare_run_folder(const std::filesystem::path& folder);

}  // namespace zerolab
