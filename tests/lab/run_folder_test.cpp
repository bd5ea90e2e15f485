#include "lab/run_folder.hpp"

#include "lab/temporary_folder.hpp"
#include "stages/base/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/thrown.hpp"

namespace zerolab {
namespace {

namespace fs = std::filesystem;

void check_refused(const fs::path& folder, std::string_view part) {
  const auto error = thrown_by([&] { prepare_run_folder(folder); });
  REQUIRE(error);
  INFO(error->what());
  CHECK(error->code() == Code::output_folder);
  CHECK(contains(error->what(), folder.string()));
  CHECK(contains(error->what(), part));
  CHECK(error->way_out() != "");
}

TEST_CASE("a run folder is created with its parents", "[lab]") {
  const TemporaryFolder temporary;
  const fs::path folder = temporary.path() / "a/b/c";
  prepare_run_folder(folder);
  CHECK(fs::is_empty(folder));
  prepare_run_folder(folder);  // an empty one is taken as it is
}

TEST_CASE("an earlier run is replaced, whichever command wrote it", "[lab]") {
  const TemporaryFolder temporary;
  temporary.write("train/run.json", "{}");
  temporary.write("train/rank0.events.jsonl", "");
  temporary.write("train/rank11.events.jsonl", "");
  temporary.write("train/summary.json", "{}");
  temporary.write("compare/compare.json", "{}");
  temporary.write("compare/stage3/run.json", "{}");
  temporary.write("compare/stage3/error.json", "{}");
  for (const char* name : {"train", "compare"}) {
    prepare_run_folder(temporary.path() / name);
    CHECK(fs::is_empty(temporary.path() / name));
  }
}

TEST_CASE("foreign content is refused by name, and nothing is removed", "[lab]") {
  const TemporaryFolder temporary;
  temporary.write("mixed/run.json", "{}");
  temporary.write("mixed/stage1/thesis.tex", "x");
  check_refused(temporary.path() / "mixed", "stage1/thesis.tex");
  CHECK(fs::exists(temporary.path() / "mixed/run.json"));
  CHECK(fs::exists(temporary.path() / "mixed/stage1/thesis.tex"));

  temporary.write("other/summary.json", "of another program");
  check_refused(temporary.path() / "other", "has no zerolab run");
  CHECK(fs::exists(temporary.path() / "other/summary.json"));
}

TEST_CASE("a link is never followed to be emptied", "[lab]") {
  const TemporaryFolder temporary;
  temporary.write("precious/run.json", "{}");
  temporary.write("run/run.json", "{}");
  fs::create_directory_symlink(temporary.path() / "precious", temporary.path() / "run/stage0");
  check_refused(temporary.path() / "run", "stage0");
  CHECK(fs::exists(temporary.path() / "precious/run.json"));
}

TEST_CASE("a place that cannot be a folder is refused", "[lab]") {
  const TemporaryFolder temporary;
  const fs::path file = temporary.write("file", "x");
  check_refused(file, "is not a folder");
  check_refused(file / "below", "");
  check_refused("/proc/zerolab", "cannot make");
}

}  // namespace
}  // namespace zerolab
