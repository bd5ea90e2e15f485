#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "stages/base/error.hpp"

namespace zerolab {

/// A folder of its own, for benches and tests; gone with everything in it when this goes.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    // mkdtemp puts letters for the X's.
    std::string name = (std::filesystem::temp_directory_path() / "zerolab-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) {
      throw Error(Code::output_folder, "no temporary folder can be made as " + name,
                  "set TMPDIR to a folder that may be written");
    }
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  /// Writes a file below the folder (its folders too) and returns its path.
  std::filesystem::path write(const std::filesystem::path& name, std::string_view content) const {
    std::filesystem::path file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << content;
    return file;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace zerolab
