#pragma once

namespace zerolab {

inline constexpr const char* kVersion = ZEROLAB_VERSION;

}  // namespace zerolab
