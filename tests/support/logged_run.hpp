#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "stages/engine/training.hpp"

namespace zerolab::test {

/// The files of a run folder as a test can edit them.
struct LoggedRun {
  using Json = nlohmann::ordered_json;

  Json run, summary;
  std::vector<std::vector<std::string>> logs;  // lines by rank; one that is emptied has no file
  std::string cut = {};                        // follows the last line of rank 1, without its end

  Json event(std::size_t rank, std::size_t line) const { return Json::parse(logs[rank][line]); }
  void set(std::size_t rank, std::size_t line, const Json& event) {
    logs[rank][line] = event.dump();
  }
  /// Changes an event in its place.
  void change(std::size_t rank, std::size_t line, const std::function<void(Json&)>& edit);
  /// Makes `seq` grow by one again, after lines came or went.
  void renumber(std::size_t rank);
  void erase(std::size_t rank, std::size_t line);
  void insert(std::size_t rank, std::size_t line, const Json& event);

  /// The first line from `begin` on that has all of these fields. Throws when there is none.
  std::size_t find(std::size_t rank, const Json& fields, std::size_t begin = 0) const;
  /// The last one, before `end`.
  std::size_t find_last(std::size_t rank, const Json& fields,
                        std::size_t end = std::string::npos) const;

  void write(const std::filesystem::path& folder) const;
};

/// Trains with ranks as threads, and logs what `zerolab train` would.
LoggedRun logged_run(int ranks, const Training& training);

}  // namespace zerolab::test
