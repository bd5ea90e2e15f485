#include <fmt/format.h>

#include <fstream>

#include "stages/base/read_file.hpp"
#include "tests/cli/command.hpp"
#include "tests/support/catch.hpp"

using namespace zerolab;
using namespace zerolab::test;
using nlohmann::json;

namespace {

Outcome train(const Scratch& scratch, const std::string& run, const std::string& arguments) {
  return run_zerolab(fmt::format("train -n 3 --model mlp-small --steps 2 --out {} {}",
                                 scratch.arg(run), arguments));
}

/// The data in a page.
json data_of(const std::filesystem::path& page) {
  const std::string text = read_file(page).value();
  const std::string begin = R"(id="data">)";
  const std::size_t from = text.find(begin) + begin.size();
  return json::parse(text.substr(from, text.find("</script", from) - from));
}

}  // namespace

TEST_CASE("report makes one page of a run, and says where it is") {
  const Scratch scratch;
  REQUIRE(train(scratch, "run", "--stage 3").status == 0);
  const Outcome made =
      run_zerolab(fmt::format("report {} -o {}", scratch.arg("run"), scratch.arg("page.html")));
  INFO(made.all());
  REQUIRE(made.status == 0);
  CHECK(made.out == fmt::format("{}: open it in a browser\n", scratch.path("page.html").string()));
  const json data = data_of(scratch.path("page.html"));
  REQUIRE(data["runs"].size() == 1);
  CHECK(data["runs"][0]["about"]["model"] == "mlp-small");
  CHECK(data["runs"][0]["ended"] == true);
  CHECK(data["runs"][0]["comm"] == read_json(scratch.path("run") / "summary.json")["comm"]);
  CHECK(read_file(scratch.path("page.html")).value().size() < 2'000'000);
}

TEST_CASE("report puts the stages of a comparison and other runs into one page") {
  const Scratch scratch;
  REQUIRE(
      run_zerolab("compare -n 3 --model mlp-small --steps 2 --out " + scratch.arg("all")).status ==
      0);
  REQUIRE(train(scratch, "run", "--stage 3 --bf16").status == 0);
  REQUIRE(run_zerolab(fmt::format("report {} {} -o {}", scratch.arg("all"), scratch.arg("run"),
                                  scratch.arg("page.html")))
              .status == 0);
  const json data = data_of(scratch.path("page.html"));
  CHECK(data["runs"].size() == 5);
  REQUIRE(data["comparisons"].size() == 1);
  CHECK(data["comparisons"][0]["bitwise_equal"] == true);
}

TEST_CASE("report shows runs that failed: out of memory, in a comparison, without a step") {
  const Scratch scratch;
  REQUIRE(train(scratch, "run", "--stage 0 --device-memory 100KiB").status == 3);
  REQUIRE(run_zerolab("report " + scratch.arg("run") + " -o " + scratch.arg("page.html")).status ==
          0);
  const json details = read_json(scratch.path("run") / "error.json")["details"];
  json failure = data_of(scratch.path("page.html"))["runs"][0]["failure"];
  CHECK(failure["code"] == "ZL301");
  CHECK(failure["out_of_memory"]["requested"] == details["requested"]);
  CHECK(failure["out_of_memory"]["owner"] == details["owner"]);
  CHECK(failure["out_of_memory"]["holders"].size() == details["holders"].size());

  REQUIRE(run_zerolab("compare -n 3 --model mlp-small --steps 2 --stages 3,0 --device-memory "
                      "2500KiB --out " +
                      scratch.arg("all"))
              .status == 3);
  REQUIRE(run_zerolab("report " + scratch.arg("all") + " -o " + scratch.arg("page.html")).status ==
          0);
  const json runs = data_of(scratch.path("page.html"))["runs"];
  REQUIRE(runs.size() == 2);
  CHECK(runs[0]["failure"]["code"] == "ZL301");
  CHECK(runs[1]["failure"].is_null());
}

TEST_CASE("report refuses what is no run and what cannot be written, and says why") {
  const Scratch scratch;
  const auto refuses = [](const std::string& arguments, const std::string& why) {
    const Outcome made = run_zerolab("report " + arguments);
    INFO(made.all());
    CHECK(made.status == 2);
    CHECK(made.out.empty());
    CHECK(made.count(why) == 1);
    CHECK(made.count("way out: ") == 1);
  };
  refuses("", "RUN is required");
  refuses(scratch.arg("none"), "is not there");
  scratch.write("empty/run.json", "");
  refuses(scratch.arg("empty"), "run.json is not JSON");
  REQUIRE(train(scratch, "run", "--stage 1 --log-level steps").status == 0);
  refuses(scratch.arg("run") + " -o " + scratch.arg("none/page.html"),
          "page.html' cannot be written");
  json run = read_json(scratch.path("run") / "run.json");
  run["settings"] = 5;
  std::ofstream(scratch.path("run") / "run.json") << run;
  refuses(scratch.arg("run"), "run.json settings is 5; a list is expected");
}
