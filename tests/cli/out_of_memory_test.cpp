#include <fmt/format.h>

#include <set>

#include "stages/base/types.hpp"
#include "tests/cli/command.hpp"
#include "tests/support/catch.hpp"

using namespace zerolab;
using namespace zerolab::test;
using nlohmann::json;

namespace {

std::string training(int stage, const Scratch& scratch) {
  return fmt::format("train --stage {} --model mlp-small --steps 2 --out {} ", stage,
                     scratch.arg("run"));
}

/// {"a": {"b": value}} for "a.b".
json nested(const std::string& name, const json& value) {
  const std::size_t dot = name.find('.');
  if (dot == std::string::npos) return {{name, value}};
  return {{name.substr(0, dot), nested(name.substr(dot + 1), value)}};
}

/// What was asked for, and when.
std::string request(const json& details) {
  return fmt::format("{} in {}", details["owner"].get<std::string>(),
                     details["where"].get<std::string>());
}

}  // namespace

TEST_CASE("threads, processes and every repetition are out of memory with the same words") {
  const Scratch scratch;
  const std::filesystem::path file = scratch.path("run") / "error.json";
  for (const int stage : {0, 3}) {
    const std::string tight = training(stage, scratch) + "--device-memory 900KB ";
    REQUIRE(run_zerolab(tight + "-n 3").status == 3);
    const json first = read_json(file);
    CHECK(first["details"]["last"].size() >= 1);
    REQUIRE(run_zerolab(tight + "-n 3").status == 3);
    CHECK(read_json(file) == first);
    REQUIRE(mpirun_zerolab(3, tight).status == 3);
    CHECK(read_json(file) == first);
  }
}

TEST_CASE("a run out of memory that follows its report comes past that point") {
  const Scratch scratch;
  const std::filesystem::path file = scratch.path("run") / "error.json";
  std::set<std::string> followed;
  const auto tight = [&](Index ranks, Index budget) {
    return training(3, scratch) + fmt::format("-n {} --device-memory {} ", ranks, budget);
  };
  for (Index budget = 700'000; budget < 2'000'000; budget += 100'000) {
    if (run_zerolab(tight(3, budget)).status == 0) continue;
    const json ended = read_json(file)["details"];
    for (const json& advice : ended["advice"]) {
      const auto setting = advice["setting"].get<std::string>();
      const json& fits = advice["fits"];
      INFO(setting << " " << fits << " in " << budget);
      std::string arguments = setting == "--device-memory" ? tight(3, fits.get<Index>())
                              : setting == "world_size"    ? tight(fits.get<Index>(), budget)
                                                           : tight(3, budget);
      if (setting != "--device-memory" && setting != "world_size") {
        scratch.write("advice.json", nested(setting, fits).dump());
        arguments += " --config " + scratch.arg("advice.json");
      }
      const Outcome outcome = run_zerolab(arguments);
      INFO(outcome.all());
      CHECK((outcome.status == 0 || outcome.status == 3));
      if (outcome.status == 3) CHECK(request(read_json(file)["details"]) != request(ended));
      followed.insert(setting);
    }
  }
  CHECK(followed.size() >= 3);
}
