// Three hundred models drawn at random: every stage computes what plain arithmetic does.

#include <fmt/format.h>

#include "stages/model/model.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/described_training.hpp"
#include "tests/support/random_model.hpp"

using namespace zerolab;
using namespace zerolab::test;

TEST_CASE("any model gives the same bits in every stage, and what plain arithmetic gives",
          "[engine]") {
  for (std::uint64_t number = 0; number < 300; ++number) {
    const int ranks = static_cast<int>(number % 4) + 1;
    const DescribedModel model = random_model(number);
    const bool registered = number % 3 != 0 || borrows_in_leaf(model);
    const std::string wrong = wrong_at(ranks, model, [&](Training& training) {
      randomize_settings(number, training);
      training.build = [=] { return build_described(model, registered); };
      training.settings.zero.auto_register_external_parameters = !registered;
    });
    INFO("model " << number);
    CHECK(wrong.empty());
    if (!wrong.empty()) UNSCOPED_INFO(wrong);
  }
}

TEST_CASE("the models drawn at random have every kind of part, and not each the same", "[engine]") {
  std::map<std::string, int> found;
  const std::function<void(const Part&)> count = [&](const Part& part) {
    found[fmt::format("kind {}", static_cast<int>(part.kind))]++;
    found[fmt::format("when {}", static_cast<int>(part.when))]++;
    found["residual"] += part.residual ? 1 : 0;
    found["leaf"] += part.leaf ? 1 : 0;
    found["recomputed"] += part.recomputed ? 1 : 0;
    for (const Part& each : part.parts) count(each);
  };
  int repeated = 0;
  for (std::uint64_t number = 0; number < 300; ++number) {
    const DescribedModel model = random_model(number);
    std::set<std::string> names;
    for (const Part& part : model.parts) {
      count(part);
      if (!names.insert(part.name).second) ++repeated;
    }
    found["tied"] += model.tied ? 1 : 0;
    found["frozen"] += model.frozen.empty() ? 0 : 1;
    found["frozen embedding"] += static_cast<int>(model.frozen.count("embedding.weight"));
  }
  CHECK(repeated > 20);
  CHECK(found.size() == 5 + 5 + 3 + 3);
  for (const auto& [what, times] : found) {
    INFO(what);
    CHECK(times > 20);
  }
}
