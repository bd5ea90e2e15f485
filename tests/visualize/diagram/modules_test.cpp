#include "visualize/diagram/modules.hpp"

#include "lab/run_json.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/described_training.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/random_model.hpp"
#include "tests/support/thrown.hpp"
#include "tests/support/written_run.hpp"
#include "tests/support/xml.hpp"
#include "visualize/diagram/render.hpp"

namespace zerolab::test {
namespace {

LoggedRun run_with_external() {
  LoggedRun logged = run_of_stage(3);
  logged.run["parameters"][2]["requires_grad"] = false;
  auto& modules = logged.run["modules"];
  modules[2]["leaf"] = true;
  modules.back()["external"].push_back(logged.run["parameters"][0]["name"]);
  return logged;
}

TEST_CASE("the module tree is drawn as the golden graph, external uses as dashed arrows",
          "[diagram]") {
  const WrittenRun written(run_with_external());
  const std::string dot = diagram::modules_dot(written.run.run);
  CHECK(difference_from_golden(dot, "modules.dot") == "");
  CHECK(contains(dot, "class=\"external\", style=dashed"));
  CHECK(contains(dot, "bias (frozen)"));
  CHECK(contains(dot, "reads embedding.weight"));
  CHECK(contains(dot, "peripheries=2"));
  CHECK(fault_in_xml(diagram::render(dot, "svg")) == "");
}

TEST_CASE("what a module reads is what it and all below it own, and what is registered with them",
          "[diagram]") {
  const WrittenRun written(run_with_external());
  const log::Run& run = written.run.run;
  CHECK(diagram::parameters_of(run, run.modules[0].name).size() == run.parameters.size());
  const log::Module& last = run.modules.back();
  const auto of_last = diagram::parameters_of(run, last.name);
  CHECK(of_last.size() == last.parameters.size() + 1);
  CHECK(of_last.count(run.parameters[0].name) == 1);
  CHECK(diagram::parameters_of(run, "no such module").empty());
}

TEST_CASE("modules that hold themselves, name what is not there, or are too many, do no harm",
          "[diagram]") {
  LoggedRun logged = run_of_stage(3);
  auto& modules = logged.run["modules"];
  modules[1]["children"] = {modules[0]["name"], modules[1]["name"], "ghost"};
  modules[1]["external"] = {"ghost.weight"};
  CHECK(fault_in_xml(diagram::render(diagram::modules_dot(WrittenRun(logged).run.run), "svg")) ==
        "");
  // A chain of modules, deeper than a stack.
  modules.clear();
  for (int i = 0; i < 100'000; ++i) {
    modules.push_back({{"name", std::to_string(i)},
                       {"class", "M"},
                       {"leaf", false},
                       {"children", {std::to_string(i + 1)}},
                       {"parameters", LoggedRun::Json::array()},
                       {"external", LoggedRun::Json::array()}});
  }
  const WrittenRun deep(logged);
  CHECK(diagram::parameters_of(deep.run.run, "0").empty());
  CHECK_THROWS_AS(diagram::modules_dot(deep.run.run), log::Unreadable);
}

TEST_CASE("the module tree of every random model can be drawn", "[diagram]") {
  LoggedRun some_run = run_of_stage(3);
  some_run.logs = {{}, {}, {}};
  for (std::uint64_t number = 0; number < 60; ++number) {
    const DescribedModel model = random_model(number);
    Training training = training_of_described(model, 3);
    training.build = [=] { return build_described(model, true); };
    LoggedRun logged = some_run;
    logged.run["parameters"] = parameters_json(training);
    logged.run["modules"] = modules_json(training);
    const WrittenRun written(logged);
    INFO(number);
    CHECK(fault_in_xml(diagram::render(diagram::modules_dot(written.run.run), "svg")) == "");
  }
}

}  // namespace
}  // namespace zerolab::test
