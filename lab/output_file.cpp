#include "lab/output_file.hpp"

#include <fmt/format.h>

#include <fstream>

#include "lab/generated_text.hpp"
#include "stages/base/error.hpp"

namespace zerolab {

void write_output(const std::filesystem::path& file, std::string_view content) {
  std::ofstream out(file, std::ios::binary);
  out << content << std::flush;
  if (out) return;
  throw Error(
      Code::output_folder, printable(fmt::format("'{}' cannot be written", file.string())),
      "name with -o a file in a folder that is there, that you may write to, on a disk with "
      "space");
}

}  // namespace zerolab
