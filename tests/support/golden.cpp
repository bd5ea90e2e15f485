#include "tests/support/golden.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "stages/base/read_file.hpp"
#include "tests/support/documents.hpp"

namespace zerolab::test {

std::string difference_from_golden(const std::string& text, const std::string& name) {
  const std::filesystem::path file = repository() / "tests/visualize/golden" / name;
  if (std::getenv("ZEROLAB_WRITE_GOLDEN") != nullptr) {
    std::ofstream(file, std::ios::binary) << text;
    return file.string() + " is written anew";
  }
  const auto golden = read_file(file);
  if (!golden) return file.string() + " cannot be read";
  if (*golden == text) return "";
  std::istringstream mine(text), theirs(*golden);
  for (int line = 1;; ++line) {
    std::string a, b;
    const bool more_of_mine = static_cast<bool>(std::getline(mine, a));
    const bool more_of_theirs = static_cast<bool>(std::getline(theirs, b));
    if (a != b || more_of_mine != more_of_theirs) {
      return fmt::format("{}:{}\n  is     {}\n  golden {}", name, line, a, b);
    }
    if (!more_of_mine) return name + ": they differ at the end";
  }
}

}  // namespace zerolab::test
