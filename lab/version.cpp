#include "lab/version.hpp"

namespace zerolab {

const char* version() { return ZEROLAB_VERSION; }

}  // namespace zerolab
