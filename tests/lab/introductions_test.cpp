// The configurations that introductions to ZeRO-3 print, run as they are printed.

#include "lab/run.hpp"
#include "lab/temporary_folder.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/thrown.hpp"
#include "tests/support/trainings.hpp"

namespace zerolab::test {
namespace {

struct Configured {
  Effective effective;
  std::vector<RankReport> reports;
};

/// What `zerolab train --config FILE --steps 3 -n 3` would train.
Configured train_with(std::string_view configuration) {
  const TemporaryFolder folder;
  const auto file = folder.write("ds_config.json", configuration);
  RunOptions options =
      parse_command_line({"train", "--steps", "3", "--config", file.string()}, false).options;
  const Plan plan = make_plan(options, "zerolab train", 3);
  Configured result{settings_for(plan, std::nullopt), {}};
  Training training = training_for(plan, result.effective, 0);
  training.validation = {};
  result.reports = run(3, training);
  return result;
}

TEST_CASE("a first configuration of stage 3 runs verbatim, comments and 5e7 included", "[lab]") {
  const Configured plain = train_with("{}");
  const Configured configured = train_with(R"({
    "zero_optimization": {
        "stage": 3,                                    // Enable ZeRO-3
        "overlap_comm": true,                          // Overlap communication with computation
        "stage3_prefetch_bucket_size": 5e7,            // Prefetch bucket size
        "stage3_param_persistence_threshold": 1e4      /* Keep small parameters */
    }
})");
  const ZeroSettings& zero = configured.effective.settings.zero;
  CHECK(zero.stage == 3);
  CHECK(zero.overlap_comm);
  CHECK(zero.prefetch_bucket_size == 50'000'000);
  CHECK(zero.param_persistence_threshold == 10'000);
  CHECK(configured.effective.warnings.empty());
  CHECK(bits(configured.reports[0]) == bits(plain.reports[0]));
  CHECK(configured.reports[0].fetches.hits > 0);
}

TEST_CASE("a configuration with every limit of stage 3 runs, and says what it keeps whole",
          "[lab]") {
  const Configured configured = train_with(R"({
    "zero_optimization": {
        "stage": 3,
        "stage3_param_persistence_threshold": 100000,
        "stage3_model_persistence_threshold": 100000,
        "stage3_max_live_parameters": 1e9,
        "stage3_max_reuse_distance": 1e9,
        "stage3_prefetch_bucket_size": 1e7
    }
})");
  CHECK(bits(configured.reports[0]) == bits(train_with("{}").reports[0]));
  REQUIRE(configured.effective.warnings.size() == 1);
  CHECK(contains(configured.effective.warnings[0], "nothing will ever be released inside a pass"));
  const Configured all = train_with(
      R"({"zero_optimization": {"stage": 3, "stage3_param_persistence_threshold": 100000}})");
  REQUIRE(all.effective.warnings.size() == 1);
  CHECK(contains(all.effective.warnings[0], "nothing will ever be released: "));
}

TEST_CASE("a configuration that offloads is refused by key, all of it at once", "[lab]") {
  const auto error = thrown_by([] {
    train_with(R"({
    "zero_optimization": {
        "stage": 3,
        "offload_param": { "device": "cpu", "pin_memory": true },
        "offload_optimizer": { "device": "cpu", "pin_memory": true }
    }
})");
  });
  REQUIRE(error);
  CHECK(error->code() == Code::config_unsupported);
  CHECK(contains(error->what(), "zero_optimization.offload_param.device is \"cpu\""));
  CHECK(contains(error->what(), "zero_optimization.offload_optimizer.device is \"cpu\""));
}

TEST_CASE("a misplaced dynamic_loss_scale is refused, and told where it belongs", "[lab]") {
  const auto error = thrown_by([] {
    train_with(R"({
    "zero_optimization": {
        "stage": 3,
        "log_trace_cache_warnings": true,
        "dynamic_loss_scale": true
    }
})");
  });
  REQUIRE(error);
  CHECK(error->code() == Code::config_unknown_key);
  CHECK(contains(error->what(),
                 "zero_optimization.dynamic_loss_scale is not a setting; it is "
                 "called fp16.loss_scale, where 0 makes it dynamic"));
  CHECK_FALSE(contains(error->what(), "log_trace_cache_warnings"));
}

}  // namespace
}  // namespace zerolab::test
