#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lab/temporary_folder.hpp"

namespace zerolab::test {

/// What a command did. A command that hangs is killed after three minutes, with status 124.
struct Outcome {
  int status = 0;
  std::string out;
  std::string err;

  /// How often the text stands in either stream.
  int count(const std::string& text) const;
  std::string all() const { return out + err; }
};

/// Runs a shell command line.
Outcome run_command(const std::string& line);

/// Runs zerolab in one process, ranks as threads.
Outcome run_zerolab(const std::string& arguments);
/// Runs zerolab under mpirun.
Outcome mpirun_zerolab(int ranks, const std::string& arguments);

nlohmann::json read_json(const std::filesystem::path& file);
std::vector<nlohmann::json> read_json_lines(const std::filesystem::path& file);

/// A folder that goes when the test ends.
class Scratch {
 public:
  std::filesystem::path path(const std::string& name) const { return folder_.path() / name; }
  /// Quoted for a command line.
  std::string arg(const std::string& name) const { return "'" + path(name).string() + "'"; }
  void write(const std::string& name, const std::string& text) const { folder_.write(name, text); }

 private:
  TemporaryFolder folder_;
};

}  // namespace zerolab::test
