#include "visualize/log/run_folder.hpp"

#include <fmt/format.h>

#include "lab/temporary_folder.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/logged_run.hpp"
#include "tests/support/trainings.hpp"

namespace zerolab::test {
namespace {

using Json = LoggedRun::Json;

LoggedRun small_run() {
  Training training = training_of_odd_sizes(3);
  training.steps = 1;
  training.settings.zero.param_persistence_threshold = 1;
  return logged_run(2, training);
}

/// What reading the folder of a run says is wrong.
std::string mistake_in(const LoggedRun& run) {
  const TemporaryFolder folder;
  run.write(folder.path());
  try {
    log::read_run_folder(folder.path());
  } catch (const log::Unreadable& unreadable) {
    CHECK_FALSE(unreadable.way_out.empty());
    std::string text = unreadable.what();
    CHECK(text.rfind(folder.path().string() + "/", 0) == 0);
    return text.substr(folder.path().string().size() + 1);
  }
  return "";
}

TEST_CASE("a run folder is read: parameters, modules, machine, summary and failure", "[log]") {
  const LoggedRun run = small_run();
  const TemporaryFolder folder;
  run.write(folder.path());
  folder.write("error.json",
               R"({"code": "ZL301", "exit_status": 3, "rank": 1, "message": "m", "way_out": ""})");
  const log::RunFolder read = log::read_run_folder(folder.path());
  CHECK(read.run.stage == 3);
  CHECK(read.run.world_size == 2);
  CHECK_FALSE(read.run.device_memory);
  REQUIRE(read.run.parameters.size() == 10);
  CHECK(read.run.parameters[0].name == "embedding.weight");
  CHECK(read.run.parameters[0].numel == 33);
  CHECK_FALSE(read.run.parameters[0].persistent);
  CHECK(read.run.parameters[4].name == "narrow.bias");
  CHECK(read.run.parameters[4].persistent);
  REQUIRE(read.run.modules.size() == 7);
  CHECK(read.run.modules[0].name == "odd");
  CHECK(read.run.modules[0].class_name == "OddSizes");
  CHECK(read.run.modules[0].children.size() == 6);
  CHECK(read.run.modules[2].parameters == std::vector<std::string>{"norm.weight", "norm.bias"});
  CHECK(read.run.moves.size() > 10);
  CHECK(read.run.gradient_moves.size() == 7);
  REQUIRE(read.summary);
  CHECK(read.summary->steps.size() == 1);
  CHECK(read.summary->memory.size() == 2);
  CHECK(read.summary->comm.count(log::Op::reduce_scatter) == 1);
  REQUIRE(read.failure);
  CHECK(read.failure->code == "ZL301");
  CHECK(read.failure->rank == 1);
}

TEST_CASE("modules in run.json have the tied head's foreign parameter, and leaves", "[log]") {
  Training training = training_of(tiny_transformer(), 3);
  training.settings.zero.leaf_modules.names = {"blocks.1"};
  training.steps = 1;
  const TemporaryFolder folder;
  logged_run(1, training).write(folder.path());
  const log::Run run = log::read_run_folder(folder.path()).run;
  bool head = false, leaf = false;
  for (const log::Module& module : run.modules) {
    head = head || (module.name == "head" && module.parameters.empty() &&
                    module.external == std::vector<std::string>{"token_embedding.weight"});
    leaf = leaf || (module.name == "blocks.1" && module.leaf);
    CHECK((module.leaf == (module.name == "blocks.1")));
  }
  CHECK(head);
  CHECK(leaf);
}

TEST_CASE("what is wrong with a file of a run folder is said with its name and place", "[log]") {
  const LoggedRun good = small_run();
  REQUIRE(mistake_in(good) == "");
  const auto with = [&](auto edit) {
    LoggedRun run = good;
    edit(run);
    return mistake_in(run);
  };
  CHECK(with([](LoggedRun& run) { run.run = Json::array(); }) ==
        "run.json it is []; an object is expected");
  CHECK(with([](LoggedRun& run) { run.run.erase("modules"); }) == "run.json has no 'modules'");
  CHECK(with([](LoggedRun& run) { run.run["stage"] = 4; }) ==
        "run.json stage is 4; 0 to 3 is expected");
  CHECK(with([](LoggedRun& run) { run.run["world_size"] = 0; }) ==
        "run.json world_size is 0; 1 to 65536 is expected");
  CHECK(with([](LoggedRun& run) { run.run["world_size"] = 1'000'000'000; }) ==
        "run.json world_size is 1000000000; 1 to 65536 is expected");
  CHECK(with([](LoggedRun& run) { run.run["device_memory"] = "1GB"; }) ==
        "run.json device_memory is \"1GB\"; a whole number from 0 to 2^53 is expected");
  CHECK(with([](LoggedRun& run) { run.run["parameters"] = Json::object(); }) ==
        "run.json parameters is {}; a list is expected");
  CHECK(with([](LoggedRun& run) { run.run["parameters"][2].erase("numel"); }) ==
        "run.json has no 'numel' in parameters[2]");
  CHECK(with([](LoggedRun& run) { run.run["parameters"][1]["name"] = "embedding.weight"; }) ==
        "run.json has two parameters that are called \"embedding.weight\"");
  CHECK(with([](LoggedRun& run) { run.run["modules"][1]["name"] = "odd"; }) ==
        "run.json has two modules that are called \"odd\"");
  CHECK(with([](LoggedRun& run) { run.run["modules"][1]["children"] = {1}; }) ==
        "run.json modules[1].children is [1]; a list of names is expected");
  CHECK(with([](LoggedRun& run) { run.run["state_machine"]["parameter"][0]["to"] = "GONE"; }) ==
        "run.json state_machine.parameter[0].to is \"GONE\"; one of NOT_AVAILABLE, INFLIGHT, "
        "AVAILABLE is expected");
  CHECK(with([](LoggedRun& run) { run.summary["memory"].erase(1); }) ==
        "summary.json tells the memory of 1 ranks, run.json has 2");
  CHECK(with([](LoggedRun& run) { run.summary["comm"]["gossip"] = 1; }) ==
        "summary.json has traffic of \"gossip\", which is no collective");
  CHECK(with([](LoggedRun& run) { run.summary["steps"][0]["loss"] = "low"; }) ==
        "summary.json steps[0].loss is \"low\"; a number is expected");
}

TEST_CASE("files of a run folder that are empty, cut or hostile are refused", "[log]") {
  const TemporaryFolder folder;
  const std::string name = folder.path().string();
  const auto refused = [&] {
    try {
      log::read_run_folder(folder.path());
      return std::string();
    } catch (const log::Unreadable& unreadable) {
      return std::string(unreadable.what());
    }
  };
  CHECK(refused() == name + " has no run.json");
  for (const std::string& text : {std::string(), std::string("{\"stage\": "), std::string("\0", 1),
                                  std::string(200'000, '['), std::string("\xFF\xFE")}) {
    folder.write("run.json", text);
    CHECK(refused() == name + "/run.json is not JSON");
  }
}

TEST_CASE("the runs in a folder are itself, or the stages of a comparison", "[log]") {
  const TemporaryFolder folder;
  const auto refused = [](const std::filesystem::path& path) {
    try {
      log::runs_in(path);
      return std::string();
    } catch (const log::Unreadable& unreadable) {
      return std::string(unreadable.what());
    }
  };
  const std::string name = folder.path().string();
  CHECK(refused(folder.path() / "none") == name + "/none is not there");
  CHECK(refused(folder.write("file", "")) == name + "/file is not a folder");
  CHECK(refused(folder.path()) == name + " is no run folder: there is no run.json in it");
  std::filesystem::create_directories(folder.path() / "stage1");  // a comparison that ended early
  folder.write("stage3/run.json", "{}");
  folder.write("stage0/run.json", "{}");
  CHECK(log::runs_in(folder.path()) ==
        std::vector<std::filesystem::path>{folder.path() / "stage0", folder.path() / "stage3"});
  folder.write("run.json", "{}");
  CHECK(log::runs_in(folder.path()) == std::vector<std::filesystem::path>{folder.path()});
}

}  // namespace
}  // namespace zerolab::test
