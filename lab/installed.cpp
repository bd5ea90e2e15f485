#include "lab/installed.hpp"

#include <system_error>

namespace zerolab {

std::filesystem::path this_program() {
  std::error_code failed;
  return std::filesystem::read_symlink("/proc/self/exe", failed);
}

std::filesystem::path installed(const std::filesystem::path& below_prefix) {
  return this_program().parent_path().parent_path() / below_prefix;
}

}  // namespace zerolab
