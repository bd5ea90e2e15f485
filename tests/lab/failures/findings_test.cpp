#include "lab/failures/findings.hpp"

#include <cmath>

#include "stages/base/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/thrown.hpp"

namespace zerolab {
namespace {

Findings findings() {
  Findings result(3);
  result.add("broken", {{"exit", 3},
                        {"summary",
                         {{"steps", {{{"loss", 5.5}, {"hash", "00ff"}}, {{"loss", nullptr}}}},
                          {"memory", {{{"device", {{"peak", {{"total", 4096}}}}}}}}}}});
  result.add("advised", {{"error",
                          {{"details",
                            {{"advice",
                              {{{"setting", "zero_optimization.reduce_bucket_size"}, {"fits", 77}},
                               {{"setting", "--device-memory"}, {"fits", 5000}}}}}}}}});
  result.add("fixed",
             {{"summary", {{"steps", {{{"loss", 5.0}, {"hash", "00fe"}}}}}}, {"equal", true}});
  return result;
}

TEST_CASE("an expression reaches what the runs have left by its path", "[lab][failures]") {
  const Findings known = findings();
  CHECK(known.value_of("broken.exit") == 3);
  CHECK(known.value_of("broken.summary.steps[0].loss - fixed.summary.steps[last].loss") == 0.5);
  CHECK(known.value_of("broken.summary.memory[0].device.peak.total / ranks") == 4096.0 / 3);
  CHECK(known.value_of("advice.zero_optimization.reduce_bucket_size") == 77);
  CHECK(known.value_of("fixed.equal == 1 && broken.exit > 2") == 1);
  CHECK(known.value_of("broken.summary.steps") == 2);  // how many
}

TEST_CASE("texts are equal or not, and what is null is no number", "[lab][failures]") {
  const Findings known = findings();
  const char* same = "broken.summary.steps[0].hash == broken.summary.steps[0].hash";
  const char* other = "broken.summary.steps[0].hash == fixed.summary.steps[0].hash";
  CHECK(known.value_of(same) == 1);
  CHECK(known.value_of(other) == 0);
  CHECK(std::isnan(known.value_of("broken.summary.steps[last].loss")));
  CHECK(known.value_of("broken.summary.steps[last].loss < 1e9") == 0);
}

TEST_CASE("what an expression cannot name or is not is told", "[lab][failures]") {
  const Findings known = findings();
  for (const char* expression :
       {"broken.summary.lsos", "broken.summary.steps[9].loss", "broken.summary.steps[-1].loss",
        "broken.exit.more", "advice.train_batch_size", "measured.peak", "", "1 +", "ranks ranks",
        "broken.summary.steps[99999999999999999999].loss"}) {
    INFO(expression);
    const auto error = thrown_by([&] { known.value_of(expression); });
    REQUIRE(error);
    CHECK(error->code() == Code::clinic_page);
    CHECK(contains(error->what(), expression));
  }
}

TEST_CASE("expressions in braces are replaced by their values", "[lab][failures]") {
  const Findings known = findings();
  CHECK(known.filled_in("train --device-memory {2 * 1e6 + ranks} --steps 3") ==
        "train --device-memory 2000003 --steps 3");
  CHECK(known.filled_in("{ranks}{ranks} {1/2}") == "33 0.5");
  CHECK(known.filled_in("nothing") == "nothing");
  CHECK(thrown_by([&] { known.filled_in("an {open brace"); }));
}

TEST_CASE("a verdict shows the values it was made from", "[lab][failures]") {
  CHECK(findings().values_in("broken.exit == ranks") == "broken.exit = 3, ranks = 3");
}

}  // namespace
}  // namespace zerolab
