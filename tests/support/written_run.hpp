#pragma once

#include "lab/temporary_folder.hpp"
#include "tests/support/logged_run.hpp"
#include "tests/support/trainings.hpp"
#include "visualize/log/run_folder.hpp"

namespace zerolab::test {

/// Two steps of a small model with parameters of odd sizes, of which some persist in stage 3.
inline LoggedRun run_of_stage(int stage, int ranks = 3) {
  Training training = training_of(tiny_mlp(), stage);
  training.steps = 2;
  training.settings.zero.prefetch_bucket_size = 100;
  training.settings.zero.param_persistence_threshold = 5;
  return logged_run(ranks, training);
}

/// A run in a folder of its own, which goes with it.
struct WrittenRun {
  explicit WrittenRun(const LoggedRun& logged) {
    logged.write(folder.path());
    run = log::read_run_folder(folder.path());
  }

  TemporaryFolder folder;
  log::RunFolder run;
};

/// Replaces a name everywhere in a run: of a parameter, a module, in owners too.
inline void rename(LoggedRun& run, const std::string& from, const std::string& to) {
  const auto quoted = [](const std::string& name) {
    const std::string json = nlohmann::json(name).dump();
    return json.substr(1, json.size() - 2);
  };
  const auto replace = [&](std::string text) {
    const std::string old = quoted(from), fresh = quoted(to);
    for (std::size_t at = text.find(old); at != std::string::npos;
         at = text.find(old, at + fresh.size())) {
      text.replace(at, old.size(), fresh);
    }
    return text;
  };
  run.run = LoggedRun::Json::parse(replace(run.run.dump()));
  for (auto& lines : run.logs) {
    for (std::string& line : lines) line = replace(line);
  }
}

}  // namespace zerolab::test
