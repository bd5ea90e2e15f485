#include "lab/run_folder.hpp"

#include <fmt/format.h>

#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include "stages/base/error.hpp"

namespace zerolab {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void refuse(const std::string& what, const std::string& way_out) {
  throw Error(Code::output_folder, what, way_out);
}

// What is in a run folder. A name that other programs use as well does not make it ours.
struct Content {
  bool ours = false;                 // something only zerolab writes is there
  std::vector<std::string> foreign;  // what zerolab never writes
};

void look_into(const fs::path& folder, const fs::path& below, Content& content) {
  static const std::regex telling(R"(run\.json|compare\.json|rank[0-9]+\.events\.jsonl)");
  static const std::regex plain(R"(summary\.json|error\.json)");
  static const std::regex stage(R"(stage[0-3])");
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const bool file = entry.is_regular_file() && !entry.is_symlink();
    const bool directory = entry.is_directory() && !entry.is_symlink();
    if (file && std::regex_match(name, telling)) {
      content.ours = true;
    } else if (directory && below.empty() && std::regex_match(name, stage)) {
      content.ours = true;  // a comparison that ended early left it; what is in it counts too
      look_into(entry.path(), name, content);
    } else if (!(file && std::regex_match(name, plain))) {
      content.foreign.push_back((below / name).string());
    }
  }
}

void empty_folder(const fs::path& folder) {
  Content content;
  look_into(folder, {}, content);
  if (!content.foreign.empty()) {
    refuse(fmt::format("{} holds files that are not of a zerolab run: {}{}", folder.string(),
                       content.foreign.front(),
                       content.foreign.size() > 1
                           ? fmt::format(" and {} more", content.foreign.size() - 1)
                           : ""),
           "name another folder with --out; zerolab only ever replaces its own runs");
  }
  if (!content.ours && !fs::is_empty(folder)) {
    refuse(fmt::format("{} is not empty and has no zerolab run in it", folder.string()),
           "name another folder with --out, or empty this one");
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    fs::remove_all(entry.path());
  }
}

void probe(const fs::path& folder) {
  const fs::path file = folder / "run.json";
  if (!std::ofstream(file)) {
    refuse(fmt::format("cannot write into {}", folder.string()),
           "name a folder that may be written with --out");
  }
  fs::remove(file);
}

}  // namespace

void prepare_run_folder(const fs::path& folder) {
  try {
    if (fs::exists(folder) && !fs::is_directory(folder)) {
      refuse(fmt::format("{} is not a folder", folder.string()), "name a folder with --out");
    }
    fs::create_directories(folder);
    empty_folder(folder);
    probe(folder);
  } catch (const fs::filesystem_error& error) {
    refuse(fmt::format("cannot make {} a run folder: {}", folder.string(), error.code().message()),
           "name a folder that may be written with --out");
  }
}

}  // namespace zerolab
