#include "stages/config/batch_sizes.hpp"

#include "stages/base/error.hpp"
#include "stages/config/resolve.hpp"
#include "tests/config/support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/thrown.hpp"

namespace zerolab {
namespace {

struct Case {
  Index train, micro, accumulation;  // 0: not given
  Index expected_train, expected_micro, expected_accumulation;
};

BatchQuestion question(const Case& c) {
  BatchQuestion q;
  if (c.train > 0) q.train = GivenSize{c.train, "ds.json"};
  if (c.micro > 0) q.micro = GivenSize{c.micro, "ds.json"};
  if (c.accumulation > 0) q.accumulation = GivenSize{c.accumulation, "ds.json"};
  q.ranks = 4;
  q.ranks_source = "-n 4";
  return q;
}

TEST_CASE("B79: what is missing in the batch equation is derived as DeepSpeed derives it",
          "[config]") {
  for (const Case& c :
       {Case{24, 2, 3, 24, 2, 3}, Case{24, 2, 0, 24, 2, 3}, Case{24, 0, 3, 24, 2, 3},
        Case{24, 0, 0, 24, 6, 1}, Case{0, 2, 3, 24, 2, 3}, Case{0, 2, 0, 8, 2, 1}}) {
    const BatchAnswer answer = complete_batch_sizes(question(c));
    INFO(c.train << " " << c.micro << " " << c.accumulation << ": " << answer.problem);
    REQUIRE(answer.sizes);
    CHECK(answer.sizes->train == c.expected_train);
    CHECK(answer.sizes->micro == c.expected_micro);
    CHECK(answer.sizes->accumulation == c.expected_accumulation);
  }
}

TEST_CASE("B79: with neither batch size the preset's micro batch counts, else there is an error",
          "[config]") {
  for (const Index accumulation : {0, 3}) {
    BatchQuestion q = question({0, 0, accumulation, 0, 0, 0});
    CHECK_FALSE(complete_batch_sizes(q).sizes);
    q.preset_micro = 5;
    REQUIRE(complete_batch_sizes(q).sizes);
    CHECK(complete_batch_sizes(q).sizes->train == 5 * 4 * std::max<Index>(1, accumulation));
  }
}

TEST_CASE("B79: sizes that do not multiply up are never rounded but shown with their arithmetic",
          "[config]") {
  struct Bad {
    Case sizes;
    std::string_view arithmetic, way_out;
  };
  for (const auto& [sizes, arithmetic, way_out] :
       {Bad{{16, 2, 1, 0, 0, 0}, "2 x 1 x 4 = 8", "set train_batch_size to 8"},
        Bad{{10, 0, 0, 0, 0, 0}, "10 / 4 is not whole", "of 8 or 12"},
        Bad{{3, 0, 0, 0, 0, 0}, "3 / 4 is not whole", "of 4, or fewer ranks"},
        Bad{{20, 2, 0, 0, 0, 0}, "20 / (2 x 4) is not whole", "of 16 or 24"},
        Bad{{20, 0, 3, 0, 0, 0}, "20 / (3 x 4) is not whole", "of 12 or 24"}}) {
    const BatchAnswer answer = complete_batch_sizes(question(sizes));
    INFO(answer.problem);
    CHECK_FALSE(answer.sizes);
    CHECK(contains(answer.problem, arithmetic));
    CHECK(contains(answer.problem, way_out));
    for (const std::string_view name : {"train_batch_size", "train_micro_batch_size_per_gpu",
                                        "gradient_accumulation_steps", "4 ranks (-n 4)"}) {
      CHECK(contains(answer.problem, name));
    }
  }
}

TEST_CASE("B79: a flag against the file is a contradiction that names both", "[config]") {
  ResolveInput input = config(R"({"train_batch_size": 16, "gradient_accumulation_steps": 1})");
  input.flags = {{"train_micro_batch_size_per_gpu", 2, "--micro-batch"}};
  const auto error = thrown_by([&] { resolve(input); });
  REQUIRE(error);
  CHECK(error->code() == Code::config_contradiction);
  CHECK(contains(error->what(), "train_batch_size 16 (ds.json)"));
  CHECK(contains(error->what(), "train_micro_batch_size_per_gpu 2 (--micro-batch)"));
}

TEST_CASE("B79: zero and negative batch sizes are refused once, without a puzzle about products",
          "[config]") {
  for (const char* value : {"0", "-4"}) {
    const auto error = thrown_by([&] {
      resolve(config(std::string(R"({"train_batch_size": 10, "gradient_accumulation_steps": )") +
                     value + "}"));
    });
    REQUIRE(error);
    CHECK(error->code() == Code::config_value);
    CHECK(contains(error->what(), "ds.json: gradient_accumulation_steps is "));
    CHECK_FALSE(contains(error->what(), "mistakes"));
  }
}

TEST_CASE("B79: the rows say which size was given and which derived", "[config]") {
  const Effective derived_micro = resolve(config(R"({"train_batch_size": 24})"));
  CHECK(row_of(derived_micro, "train_batch_size").origin == Origin::config);
  CHECK(row_of(derived_micro, "train_micro_batch_size_per_gpu").origin == Origin::derived);
  CHECK(row_of(derived_micro, "train_micro_batch_size_per_gpu").value == "6");
  CHECK(row_of(derived_micro, "gradient_accumulation_steps").origin == Origin::default_value);

  const Effective from_preset = resolve(config("{}"));
  CHECK(row_of(from_preset, "train_batch_size").origin == Origin::derived);
  CHECK(row_of(from_preset, "train_batch_size").value == "8");
  CHECK(row_of(from_preset, "train_micro_batch_size_per_gpu").origin == Origin::preset);
}

}  // namespace
}  // namespace zerolab
