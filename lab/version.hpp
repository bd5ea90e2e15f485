#pragma once

namespace zerolab {

/// "0.1.0", as CMakeLists.txt has it.
const char* version();

}  // namespace zerolab
