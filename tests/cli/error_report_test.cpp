// How errors are told: as JSON, in a pipe, on a terminal; once, whatever the number of ranks.

#include <fmt/format.h>

#include "tests/cli/command.hpp"
#include "tests/cli/log_schema.hpp"
#include "tests/support/catch.hpp"

using nlohmann::json;
using namespace zerolab::test;

namespace {

const std::string kOutOfMemory = "train --model mlp-small --steps 1 --device-memory 64KiB --out ";

/// The one object that a failed command printed with --json.
json told(const Outcome& outcome) {
  INFO(outcome.all());
  CHECK(outcome.err.empty());
  const json printed = json::parse(outcome.out, nullptr, false);
  REQUIRE(printed.is_object());
  CHECK(printed.size() == 1);
  json error = printed.at("error");
  CHECK(LogDefinition("error").mismatch(error) == "");
  CHECK(error.at("exit_status") == outcome.status);
  return error;
}

/// Runs zerolab on a terminal of its own, which 80 columns are wide.
Outcome on_terminal(const std::string& arguments, const std::string& environment) {
  return run_command(fmt::format("env -u NO_COLOR {} script -qec \"stty cols 80; {} {}\" /dev/null",
                                 environment, ZEROLAB_PROGRAM, arguments));
}

bool there_is_script() {
  if (run_command("script -qec true /dev/null").status == 0) return true;
  WARN("SKIPPED: script(1) of util-linux is not here, so nothing was tried on a terminal");
  return false;
}

}  // namespace

TEST_CASE("with --json a failed run prints one object and nothing else, as error.json has it") {
  for (const bool processes : {false, true}) {
    INFO((processes ? "mpirun" : "threads"));
    const Scratch scratch;
    const std::string arguments = kOutOfMemory + scratch.arg("run") + " --json";
    const json error =
        told(processes ? mpirun_zerolab(4, arguments) : run_zerolab(arguments + " -n 4"));
    CHECK(error["code"] == "ZL301");
    CHECK(error["exit_status"] == 3);
    CHECK(error["rank"].is_number());
    CHECK(error["way_out"] != "");
    CHECK(error == read_json(scratch.path("run") / "error.json"));
  }
}

TEST_CASE("with --json a failure before the run is one object too, and blames no rank") {
  const Scratch scratch;
  const std::string out = " --json --out " + scratch.arg("run");
  for (const std::string& arguments :
       {"train --stpes 5" + out, "trian" + out, "train --data /nowhere" + out,
        "compare --stages 7" + out, "train --show comm" + out, "train --break nothing" + out,
        std::string("explain 999 --json"), std::string("doctor --json")}) {
    INFO(arguments);
    const json error = told(run_zerolab(arguments));
    CHECK(error["exit_status"] == 2);
    CHECK(error["rank"].is_null());
    CHECK(told(mpirun_zerolab(4, arguments))["exit_status"] == 2);
  }
  CHECK(told(run_zerolab("train '--\xff\xfe' --json"))["code"] == "ZL201");
}

TEST_CASE(
    "an MPI that does not hear mpirun is told of a wrong command line too, in JSON if asked") {
  const std::string deaf = fmt::format("env PMI_RANK=0 PMI_SIZE=4 {} ", ZEROLAB_PROGRAM);
  const Outcome outcome = run_command(deaf + "train --stpes");
  INFO(outcome.all());
  CHECK(outcome.status == 7);
  CHECK(outcome.count("zerolab: ZL702") == 1);
  CHECK(told(run_command(deaf + "train --stpes --json"))["code"] == "ZL702");
}

TEST_CASE("an error is told once by four ranks, without colours and on unbroken lines in a pipe") {
  for (const bool processes : {false, true}) {
    const Scratch scratch;
    const std::string arguments = kOutOfMemory + scratch.arg("run");
    const Outcome outcome =
        processes ? mpirun_zerolab(4, arguments) : run_zerolab(arguments + " -n 4");
    INFO(outcome.all());
    CHECK(outcome.status == 3);
    CHECK(outcome.count("zerolab: ZL301: rank ") == 1);
    CHECK(outcome.count("way out: --device-memory") == 1);
    CHECK(outcome.count("way out") == 1);
    CHECK(outcome.count("\x1b") == 0);
    CHECK(outcome.out.find("ZL") == std::string::npos);
  }
}

TEST_CASE("a message that does not say which rank failed gets its rank put before it") {
  const Scratch scratch;
  const Outcome outcome =
      run_command(fmt::format("sh -c \"ulimit -v 1000000; {} train -n 1 --model gpt2 --out {}\"",
                              ZEROLAB_PROGRAM, scratch.arg("run")));
  INFO(outcome.all());
  CHECK(outcome.status == 1);
  CHECK(outcome.count("zerolab: rank 0: ZL101: std::bad_alloc\n  way out: ") == 1);
}

TEST_CASE("on a terminal an error has colours and fits, unless colours are not wanted") {
  if (!there_is_script()) return;
  const std::string wrong = "train --data /nowhere/" + std::string(30, 'x') + "/a/b/c/d/e/f";
  const Outcome colored = on_terminal(wrong, "TERM=xterm");
  INFO(colored.all());
  CHECK(colored.status == 2);
  CHECK(colored.count("zerolab: \x1b[1m\x1b[31mZL207\x1b[0m: ") == 1);
  CHECK(colored.count("  \x1b[1mway out:\x1b[0m") == 1);
  CHECK(colored.count("more: zerolab explain ZL207") == 1);
  for (const auto& [environment, flags] : std::vector<std::pair<std::string, std::string>>{
           {"TERM=dumb", ""}, {"TERM=xterm NO_COLOR=1", ""}, {"TERM=xterm", " --plain"}}) {
    const Outcome plain = on_terminal(wrong + flags, environment);
    INFO(environment << flags << plain.all());
    CHECK(plain.status == 2);
    CHECK(plain.count("zerolab: ZL207: ") == 1);
    CHECK(plain.count("\x1b[1m") == 0);
  }
  CHECK(on_terminal(wrong, "TERM=xterm NO_COLOR=").count("\x1b[31m") == 1);
  CHECK(on_terminal(wrong + " --json", "TERM=xterm").count("\x1b") == 0);
  CHECK(on_terminal(wrong, "-u TERM").count("\x1b") == 0);
  CHECK(on_terminal(wrong + " 2>&1 | cat", "TERM=xterm").count("\x1b") == 0);
}

TEST_CASE("explain prints a section, a list, or JSON") {
  const Outcome section = run_zerolab("explain zl301");
  CHECK(section.status == 0);
  CHECK(section.out.rfind("ZL301: a memory pool went over its budget\nexit status 3: out of", 0) ==
        0);
  CHECK(run_zerolab("explain 301").out == section.out);
  CHECK(run_zerolab("explain").count(" ZL13001          130  interrupted") == 1);
  const json all = json::parse(run_zerolab("explain --json").out);
  const json one = json::parse(run_zerolab("explain --json 301").out);
  CHECK(one.at("see_it") == "zerolab train --device-memory 1MiB");
  CHECK(std::count(all.begin(), all.end(), one) == 1);
  const Outcome unknown = run_zerolab("explain ZL309");
  CHECK(unknown.status == 2);
  CHECK(unknown.count("near it are ZL209, ZL301, ZL409") == 1);
}
