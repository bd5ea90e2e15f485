#include <fmt/format.h>

#include <fstream>

#include "stages/base/read_file.hpp"
#include "tests/cli/command.hpp"
#include "tests/support/catch.hpp"

using namespace zerolab;
using namespace zerolab::test;

namespace {

void train(const Scratch& scratch, const std::string& arguments) {
  const Outcome trained =
      run_zerolab(fmt::format("train --model mlp-small -n 3 --micro-batch 1 --steps 2 --out {} {}",
                              scratch.arg("run"), arguments));
  INFO(trained.all());
  REQUIRE(trained.status == 0);
}

}  // namespace

TEST_CASE("diagram draws every kind of picture in every format, of a comparison too") {
  const Scratch scratch;
  REQUIRE(run_zerolab("compare -n 3 --micro-batch 1 --steps 1 --model mlp-small --out " +
                      scratch.arg("run"))
              .status == 0);
  const std::vector<std::pair<std::string, std::string>> formats{
      {".svg", "<?xml"}, {".png", "\x89PNG"}, {".pdf", "%PDF-"}, {".dot", "digraph zerolab {"}};
  std::size_t next = 0;
  for (const std::string kind :
       {"states", "parameters", "gradients", "partition", "modules", "sequence"}) {
    for (const std::string run : {"run", "run/stage3"}) {
      const auto& [extension, begin] = formats[next++ % formats.size()];
      const Outcome drawn = run_zerolab(fmt::format("diagram {} --of {} -o {}", scratch.arg(run),
                                                    kind, scratch.arg(kind + extension)));
      INFO(kind << " of " << run << "\n" << drawn.all());
      CHECK(drawn.status == 0);
      CHECK(drawn.all().empty());
      const auto picture = read_file(scratch.path(kind + extension));
      REQUIRE(picture.has_value());
      CHECK(picture->substr(0, begin.size()) == begin);
    }
  }
  const Outcome printed = run_zerolab(
      fmt::format("diagram {} --stage 2 --diff {}", scratch.arg("run"), scratch.arg("run/stage3")));
  CHECK(printed.status == 0);
  CHECK(printed.count("digraph zerolab {") == 1);
  CHECK(printed.count("only-second") > 0);
}

TEST_CASE("diagram shows what was asked for: a parameter, a module, a step, the spec") {
  const Scratch scratch;
  train(scratch, "--stage 3");
  const auto draws = [&](const std::string& flags, const std::string& what) {
    const Outcome drawn = run_zerolab("diagram " + scratch.arg("run") + " " + flags);
    INFO(flags << "\n" << drawn.err);
    CHECK(drawn.status == 0);
    CHECK(drawn.count(what) > 0);
  };
  draws("", "stage 3, 3 ranks, 7 parameters");
  draws("--parameter layers.1.weight", "1 of 7 parameters");
  draws("--module layers.1", "2 of 7 parameters");
  draws("--spec --no-times", "gather_scope");
  draws("--of sequence --step 1 --rank 2", "rank 2 of 3");
}

TEST_CASE("diagram refuses what it cannot draw, and names what was meant") {
  const Scratch scratch;
  train(scratch, "--stage 1");
  const auto refuses = [&](const std::string& flags, const std::string& why,
                           const std::string& folder = "run") {
    const Outcome drawn = run_zerolab(fmt::format("diagram {} {}", scratch.arg(folder), flags));
    INFO(flags << "\n" << drawn.all());
    CHECK(drawn.status == 2);
    CHECK(drawn.out.empty());
    CHECK(drawn.count(why) == 1);
    CHECK(drawn.count("way out: ") == 1);
  };
  refuses("--parameter layers.1.wieght", "no such parameter; did you mean layers.1.weight?");
  refuses("--module layer.1", "no such module; did you mean layers.1?");
  refuses("--of state", "--of");
  refuses("--parameter a --module b", "--module");
  refuses("--of modules --spec", "diagram --of modules has no use for --spec");
  refuses("--step 1", "diagram --of states has no use for --step");
  refuses("--of sequence --step 3", "has steps 1 to 2, and no step 3");
  refuses("--of sequence --rank 3", "has ranks 0 to 2, and no rank 3");
  refuses("--stage 3", "has no run of that stage");
  refuses("-o picture.jpg", "does not say which format");
  refuses("-o " + scratch.arg("no/such/folder.svg"), "ZL208: ");
  refuses("--diff " + scratch.arg("none"), "ZL211: ");
  refuses("", "ZL211: ", "none");
  scratch.write("empty/run.json", "");
  refuses("", "run.json is not JSON", "empty");
  train(scratch, "--stage 1 --log-level steps");
  refuses("", "has no events of states");
  CHECK(mpirun_zerolab(2, "diagram " + scratch.arg("run")).count("ZL201: diagram under mpirun") ==
        1);
}

TEST_CASE("report writes a trace that is JSON, and says what the log lacks") {
  const Scratch scratch;
  train(scratch, "--stage 2");
  const std::string trace =
      fmt::format("report {} --trace -o {}", scratch.arg("run"), scratch.arg("trace.json"));
  const Outcome written = run_zerolab(trace);
  INFO(written.all());
  CHECK(written.status == 0);
  CHECK(written.err.empty());
  CHECK(written.count("https://ui.perfetto.dev") == 1);
  CHECK(read_json(scratch.path("trace.json"))["traceEvents"].size() > 1000);

  std::ofstream(scratch.path("run") / "rank1.events.jsonl", std::ios::app) << "{\"t\":";
  CHECK(run_zerolab(trace).err.find("note: rank1.events.jsonl ends in the middle of line ") == 0);
  const Outcome nowhere =
      run_zerolab(fmt::format("report {} --trace -o {}", scratch.arg("run"), scratch.arg("a/b")));
  CHECK(nowhere.status == 2);
  CHECK(nowhere.count("ZL208: ") == 1);
  CHECK(run_zerolab(fmt::format("report {} --trace -o {}", scratch.arg("none"), scratch.arg("t")))
            .count("ZL211: ") == 1);
}
