#include "tests/support/logged_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>

#include "lab/run_json.hpp"
#include "stages/engine/summary.hpp"
#include "tests/support/run_ranks.hpp"

namespace zerolab::test {
namespace {

using Json = LoggedRun::Json;

/// A rank's lines, where the recorder puts them; it takes the stream that writes here.
struct Written {
  std::shared_ptr<std::stringbuf> text = std::make_shared<std::stringbuf>();
  std::unique_ptr<std::ostream> stream() const {
    return std::make_unique<std::ostream>(text.get());
  }
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

bool has(const std::string& line, const Json& fields) {
  const Json event = Json::parse(line);
  for (const auto& [name, value] : fields.items()) {
    if (!event.contains(name) || event[name] != value) return false;
  }
  return true;
}

// What run.json has that has to do with a training.
Json run_of(int ranks, const Training& training) {
  return {{"stage", training.settings.zero.stage},
          {"world_size", ranks},
          {"device_memory", nullptr},
          {"check_collectives", training.check_collectives},
          {"parameters", parameters_json(training)},
          {"modules", modules_json(training)},
          {"state_machine", state_machine_json()}};
}

}  // namespace

void LoggedRun::change(std::size_t rank, std::size_t line, const std::function<void(Json&)>& edit) {
  Json changed = event(rank, line);
  edit(changed);
  set(rank, line, changed);
}

void LoggedRun::renumber(std::size_t rank) {
  for (std::size_t i = 0; i < logs[rank].size(); ++i) {
    change(rank, i, [i](Json& event) { event["seq"] = i; });
  }
}

void LoggedRun::erase(std::size_t rank, std::size_t line) {
  logs[rank].erase(logs[rank].begin() + static_cast<std::ptrdiff_t>(line));
  renumber(rank);
}

void LoggedRun::insert(std::size_t rank, std::size_t line, const Json& event) {
  logs[rank].insert(logs[rank].begin() + static_cast<std::ptrdiff_t>(line), event.dump());
  renumber(rank);
}

std::size_t LoggedRun::find(std::size_t rank, const Json& fields, std::size_t begin) const {
  for (std::size_t i = begin; i < logs[rank].size(); ++i) {
    if (has(logs[rank][i], fields)) return i;
  }
  throw std::runtime_error("no line has " + fields.dump());
}

std::size_t LoggedRun::find_last(std::size_t rank, const Json& fields, std::size_t end) const {
  for (std::size_t i = std::min(end, logs[rank].size()); i-- > 0;) {
    if (has(logs[rank][i], fields)) return i;
  }
  throw std::runtime_error("no line has " + fields.dump());
}

void LoggedRun::write(const std::filesystem::path& folder) const {
  std::ofstream(folder / "run.json") << run;
  if (!summary.is_null()) std::ofstream(folder / "summary.json") << summary;
  for (std::size_t rank = 0; rank < logs.size(); ++rank) {
    if (logs[rank].empty()) continue;
    std::ofstream out(folder / fmt::format("rank{}.events.jsonl", rank));
    for (const std::string& line : logs[rank]) out << line << '\n';
    if (rank == 1) out << cut;
  }
}

LoggedRun logged_run(int ranks, const Training& training) {
  struct OfRank {
    Written written;
    RankReport report;
  };
  const auto all = run_ranks(ranks, [&](Communicator& communicator) {
    OfRank mine;
    Recorder recorder(communicator.rank(), mine.written.stream());
    mine.report = train(communicator, recorder, training);
    recorder.flush();
    return mine;
  });
  LoggedRun result{run_of(ranks, training), summary_json(all[0].report, training, ranks), {}};
  for (const OfRank& rank : all) result.logs.push_back(lines_of(rank.written.text->str()));
  return result;
}

}  // namespace zerolab::test
