#include "lab/bench/scratch.hpp"

#include <cstdlib>
#include <string>

#include "stages/base/error.hpp"

namespace zerolab::bench {

ScratchFolder::ScratchFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "zerolab-bench-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) {
    throw Error(Code::output_folder, "no temporary folder can be made as " + pattern,
                "set TMPDIR to a folder that may be written");
  }
  path_ = pattern;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace zerolab::bench
