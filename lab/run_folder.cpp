#include "lab/run_folder.hpp"

#include <fmt/format.h>

#include <fstream>
#include <string>
#include <string_view>
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

// "rank12.events.jsonl"
bool is_event_log(std::string_view name) {
  constexpr std::string_view kBegin = "rank";
  constexpr std::string_view kEnd = ".events.jsonl";
  if (name.size() <= kBegin.size() + kEnd.size()) return false;
  if (!name.starts_with(kBegin) || !name.ends_with(kEnd)) return false;
  name.remove_prefix(kBegin.size());
  name.remove_suffix(kEnd.size());
  return name.find_first_not_of("0123456789") == std::string_view::npos;
}

bool is_stage_folder(std::string_view name) {
  return name.size() == 6 && name.starts_with("stage") && name.back() >= '0' && name.back() <= '3';
}

void look_into(const fs::path& folder, const fs::path& below, Content& content) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const bool file = entry.is_regular_file() && !entry.is_symlink();
    const bool directory = entry.is_directory() && !entry.is_symlink();
    if (file && (name == "run.json" || name == "compare.json" || is_event_log(name))) {
      content.ours = true;
    } else if (directory && below.empty() && is_stage_folder(name)) {
      content.ours = true;  // a comparison that ended early left it; what is in it counts too
      look_into(entry.path(), name, content);
    } else if (!file || (name != "summary.json" && name != "error.json")) {
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
