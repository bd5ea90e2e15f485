#include "stages/base/read_file.hpp"

#include <array>
#include <fstream>

namespace zerolab {

std::optional<std::string> read_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return std::nullopt;
  std::string text;
  std::array<char, 4096> chunk;
  while (in) {  // read() turns a failing disk, or a folder, into a state; iterators would throw
    in.read(chunk.data(), chunk.size());
    text.append(chunk.data(), static_cast<std::size_t>(in.gcount()));
  }
  if (in.bad()) return std::nullopt;
  return text;
}

}  // namespace zerolab
