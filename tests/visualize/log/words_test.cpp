#include "visualize/log/words.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "stages/base/dtype.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/documents.hpp"

namespace zerolab {
namespace {

template <typename Enum>
void check_words(const std::string& definition) {
  INFO(definition);
  const auto schema = nlohmann::json::parse(document("log.schema.json"));
  std::vector<std::string> words;
  for (const std::string_view word : log::kWords<Enum>) words.emplace_back(word);
  CHECK(words == schema["definitions"][definition]["enum"].get<std::vector<std::string>>());
}

TEST_CASE("the reader of logs knows the words of docs/log.schema.json, in their order",
          "[log][docs]") {
  check_words<log::Phase>("phase");
  check_words<log::Status>("status");
  check_words<log::Cause>("cause");
  check_words<log::GradientStatus>("gradient_status");
  check_words<log::Category>("category");
  check_words<log::Op>("op");
  check_words<log::Dtype>("dtype");
  check_words<log::VisitKind>("visit");
  check_words<log::Action>("action");
}

TEST_CASE("a word is found by its name, and an unknown one is not", "[log]") {
  CHECK(log::named<log::Status>("INFLIGHT") == log::Status::inflight);
  CHECK(log::named<log::Cause>("publish") == log::Cause::publish);
  CHECK(log::name_of(log::Phase::tear_down) == "tear_down");
  CHECK_FALSE(log::named<log::Status>("inflight"));
  CHECK_FALSE(log::named<log::Op>(""));
}

TEST_CASE("the reader of logs knows how large elements are", "[log]") {
  for (int i = 0; name_of(static_cast<Dtype>(i)) != "?"; ++i) {
    const auto dtype = static_cast<Dtype>(i);
    INFO(name_of(dtype));
    const auto read = log::named<log::Dtype>(name_of(dtype));
    REQUIRE(read);
    CHECK(log::size_of(*read) == size_of(dtype));
  }
}

}  // namespace
}  // namespace zerolab
