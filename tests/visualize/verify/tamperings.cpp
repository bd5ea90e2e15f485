#include "tests/visualize/verify/tamperings.hpp"

#include "tests/support/trainings.hpp"

namespace zerolab::test {

using Json = LoggedRun::Json;

std::vector<Tampering> all_tamperings() {
  std::vector<Tampering> all;
  for (const auto& some :
       {tamperings_with_lines(), tamperings_with_parameters(), tamperings_with_gradients(),
        tamperings_with_memory_and_steps(), tamperings_with_collectives()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

LoggedRun run_to_tamper_with(int stage) {
  Training training = training_of(tiny_mlp(), stage);
  training.steps = 2;
  training.settings.gradient_accumulation_steps = 2;
  training.settings.zero.reduce_bucket_size = 1;
  training.settings.zero.overlap_comm = true;
  training.settings.zero.prefetch_bucket_size = 60;
  training.settings.zero.param_persistence_threshold = 5;
  training.validation = training.batches;
  training.validation_sequences = 5;
  training.generate = Sampling{.count = 2, .prompt = "\1"};
  return logged_run(3, training);
}

Json gradient(const char* to) { return {{"ev", "grad"}, {"parameter", kWeight}, {"to", to}}; }
Json parameter(const char* to) { return {{"ev", "param"}, {"parameter", kWeight}, {"to", to}}; }
Json gather() { return {{"ev", "comm"}, {"op", "all_gather"}, {"owner", kWeight}}; }
Json reduction(const LoggedRun& run) {
  const bool whole = run.run["stage"] == 0;
  return {{"ev", "comm"}, {"op", whole ? "all_reduce" : "reduce_scatter"}, {"owner", kWeight}};
}

void erase_everywhere(LoggedRun& run, const Json& fields) {
  for (std::size_t rank = 0; rank < 3; ++rank) run.erase(rank, run.find(rank, fields));
}

void change_everywhere(LoggedRun& run, const Json& fields, const std::function<void(Json&)>& edit) {
  for (std::size_t rank = 0; rank < 3; ++rank) run.change(rank, run.find(rank, fields), edit);
}

}  // namespace zerolab::test
