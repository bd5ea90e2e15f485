#include "tests/cli/command.hpp"

#include <fmt/format.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>

#include "stages/base/read_file.hpp"

namespace zerolab::test {
int Outcome::count(const std::string& text) const {
  const std::string streams = all();
  int found = 0;
  for (auto at = streams.find(text); at != std::string::npos; at = streams.find(text, at + 1)) {
    ++found;
  }
  return found;
}

Outcome run_command(const std::string& line) {
  const Scratch scratch;
  const std::string whole = fmt::format("timeout -k 5 180 {} >{} 2>{} </dev/null", line,
                                        scratch.arg("out"), scratch.arg("err"));
  const int status = std::system(whole.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(scratch.path("out")).value_or(""),
          read_file(scratch.path("err")).value_or("")};
}

Outcome run_zerolab(const std::string& arguments) {
  return run_command(fmt::format("{} {}", ZEROLAB_PROGRAM, arguments));
}

Outcome mpirun_zerolab(int ranks, const std::string& arguments) {
  return run_command(
      fmt::format("{} -n {} {} {}", ZEROLAB_MPIRUN, ranks, ZEROLAB_PROGRAM, arguments));
}

nlohmann::json read_json(const std::filesystem::path& file) {
  return nlohmann::json::parse(read_file(file).value_or(""));
}

std::vector<nlohmann::json> read_json_lines(const std::filesystem::path& file) {
  std::vector<nlohmann::json> lines;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

}  // namespace zerolab::test
